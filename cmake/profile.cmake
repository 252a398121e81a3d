# SPDX-License-Identifier: BSD-3-Clause
# Profile-guided builds of the library. The compiler is told how often each branch of a message's
# way was taken, and lays the code out by that: 8 B by MPI take a sixth less (docs/performance.md).
#
#   PINWHEEL_PROFILE=off       without, so that the same sources give the same code always
#   PINWHEEL_PROFILE=use       the build trains itself: tools/profile.sh builds the library a second
#                              time, instrumented, runs rows of the benchmark with it, and what they
#                              counted is used. All in the build folder
#   PINWHEEL_PROFILE=generate  instrumented. All programs that end with exit() add their counts to
#                              the files in PINWHEEL_PROFILE_DIR
#
# With PINWHEEL_PROFILE_DIR as well, `use` takes those files in the place of a training of its
# own: that is how to train with programs of one's own. They may be older than the sources: a
# function that has changed since is compiled without.
set(PINWHEEL_PROFILE off CACHE STRING "Profile-guided build of the library: off, generate, use")
set_property(CACHE PINWHEEL_PROFILE PROPERTY STRINGS off generate use)
set(PINWHEEL_PROFILE_DIR "" CACHE PATH "Folder that profiles are written to, or taken from")

set(profile_folder ${PROJECT_BINARY_DIR}/profile)

if(NOT PINWHEEL_PROFILE MATCHES "^(off|generate|use)$")
    message(FATAL_ERROR "PINWHEEL_PROFILE=${PINWHEEL_PROFILE}: must be off, generate or use")
endif()
if(NOT PINWHEEL_PROFILE STREQUAL "off")
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
        message(FATAL_ERROR "PINWHEEL_PROFILE=${PINWHEEL_PROFILE} needs gcc 12 or newer, the compiler is "
                            "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}: "
                            "-DCMAKE_C_COMPILER=gcc, or -DPINWHEEL_PROFILE=off")
    endif()
    if(PINWHEEL_SANITIZE OR PINWHEEL_LIBFUZZER)
        message(FATAL_ERROR "PINWHEEL_PROFILE=${PINWHEEL_PROFILE} and sanitizers exclude each other: "
                            "-DPINWHEEL_PROFILE=off")
    endif()
endif()

# A file of counts is named by its object, from the build folder on, so that folders may differ.
# Counts of processes that end at once are added under a lock, those of threads by atomic additions.
set(profile_names -fprofile-prefix-path=${PROJECT_BINARY_DIR})
set(profile_depends "")
if(PINWHEEL_PROFILE STREQUAL "generate")
    if(NOT PINWHEEL_PROFILE_DIR)
        set(PINWHEEL_PROFILE_DIR ${profile_folder}/data)
    endif()
    set(profile_options -fprofile-generate=${PINWHEEL_PROFILE_DIR} -fprofile-update=atomic ${profile_names})
elseif(PINWHEEL_PROFILE STREQUAL "use")
    # What never ran in training is compiled as ever. Functions that have no profile, or an old
    # one, are no errors; nor are counts that a process was about to change when it wrote them.
    set(using -fprofile-partial-training -fprofile-correction -Wno-missing-profile
              -Wno-coverage-mismatch ${profile_names} -DPINWHEEL_PROFILED=1)
    if(PINWHEEL_PROFILE_DIR)
        file(GLOB profile_depends CONFIGURE_DEPENDS ${PINWHEEL_PROFILE_DIR}/*.gcda)
        if(NOT profile_depends)
            message(FATAL_ERROR "PINWHEEL_PROFILE_DIR=${PINWHEEL_PROFILE_DIR}: has no profile (*.gcda). Build with "
                                "-DPINWHEEL_PROFILE=generate and this folder, run programs, and come back")
        endif()
        set(profile_options -fprofile-use=${PINWHEEL_PROFILE_DIR} ${using})
    else()
        # The training writes the file of options, without any if it cannot run.
        set(profile_depends ${profile_folder}/options)
        set(profile_options @${profile_depends})
        string(REPLACE ";" "\n" using "-fprofile-use=${profile_folder}/data;${using}")
        file(CONFIGURE OUTPUT ${profile_folder}/options.trained CONTENT "${using}\n")
        set(same "")
        foreach(name CMAKE_C_COMPILER CMAKE_C_COMPILER_LAUNCHER CMAKE_BUILD_TYPE CMAKE_C_FLAGS
                     CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS PINWHEEL_WERROR)
            list(APPEND same "-D${name}=${${name}}")
        endforeach()
        add_custom_target(profile
            COMMAND ${PROJECT_SOURCE_DIR}/tools/profile.sh ${profile_folder} ${PROJECT_SOURCE_DIR} ${same}
            BYPRODUCTS ${profile_depends}
            COMMENT "Profile: instrumented build and training" VERBATIM)
    endif()
endif()

# pinwheel_profile(TARGET): a library of the rooms that a message passes.
function(pinwheel_profile target)
    if(PINWHEEL_PROFILE STREQUAL "off")
        return()
    endif()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${profile_options}>")
    if(PINWHEEL_PROFILE STREQUAL "generate")
        target_link_options(${target} INTERFACE -fprofile-generate)
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    list(TRANSFORM sources PREPEND ${folder}/)
    set_property(SOURCE ${sources} TARGET_DIRECTORY ${target}
                 APPEND PROPERTY OBJECT_DEPENDS "${profile_depends}")
    if(TARGET profile)
        add_dependencies(${target} profile)
    endif()
endfunction()
