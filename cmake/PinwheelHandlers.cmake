# SPDX-License-Identifier: BSD-3-Clause
# pinwheel_add_handlers(TARGET FILE.c|FILE.cc... [SUPPORT FILE.c|FILE.cc...] [REALS])
#
# Adds files of handlers to a target, compiled for this machine and, by `pinwheel cc`, for the
# RV32 cores: their image becomes a part of the target, and PINWHEEL_HPU=rv32 runs it. The files
# of one call make one image; SUPPORT names files without handlers whose functions they call.
# REALS: the cores have the extensions F and D (`pinwheel cc --reals`).
#
# Files in C++ (.cc, .cpp, .cxx) are compiled as `pinwheel cc` does it, without exceptions and type
# information, in a project whose languages include CXX; CXX_STANDARD of the target holds for both.
#
# Without riscv64-unknown-elf-gcc the target is made without images, and the build says so.
# PINWHEEL_CC names the command: `pinwheel cc` of the package, or the build's own.
find_program(PINWHEEL_RV32_COMPILER riscv64-unknown-elf-gcc
             DOC "Compiler of handlers for the RV32 cores (package gcc-riscv64-unknown-elf)")
if(NOT PINWHEEL_RV32_COMPILER)
    message(STATUS "Handlers are compiled without RV32 images: there is no riscv64-unknown-elf-gcc")
endif()

function(pinwheel_add_handlers target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "REALS" "" "SUPPORT")
    get_target_property(present ${target} SOURCES)
    foreach(file IN LISTS arg_UNPARSED_ARGUMENTS arg_SUPPORT)
        if(NOT file IN_LIST present)
            target_sources(${target} PRIVATE ${file})
        endif()
    endforeach()
    set(in_cxx ${arg_UNPARSED_ARGUMENTS} ${arg_SUPPORT})
    list(FILTER in_cxx INCLUDE REGEX "\\.(cc|cpp|cxx)$")
    if(in_cxx)
        get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
        if(NOT "CXX" IN_LIST languages)
            message(FATAL_ERROR "pinwheel_add_handlers: ${in_cxx}: C++, which is no language of "
                                "this project: project(NAME LANGUAGES C CXX)")
        endif()
        set_property(SOURCE ${in_cxx} APPEND PROPERTY COMPILE_OPTIONS
                     -fno-exceptions -fno-rtti -fno-threadsafe-statics)
    endif()
    if(NOT PINWHEEL_RV32_COMPILER)
        return()
    endif()

    list(GET arg_UNPARSED_ARGUMENTS 0 first)
    get_filename_component(stem ${first} NAME_WE)
    set(image ${CMAKE_CURRENT_BINARY_DIR}/${target}_${stem}.elf)
    set(sources ${arg_UNPARSED_ARGUMENTS} ${arg_SUPPORT})
    list(TRANSFORM sources PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/"
         REGEX "^[^/]")
    set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
    set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
    set(standard "$<TARGET_PROPERTY:${target},CXX_STANDARD>")
    set(compilers --cross-cc ${PINWHEEL_RV32_COMPILER})
    if(CMAKE_C_COMPILER)
        list(APPEND compilers --cc ${CMAKE_C_COMPILER})
    endif()
    if(CMAKE_CXX_COMPILER)
        list(APPEND compilers --cxx ${CMAKE_CXX_COMPILER})
    endif()
    add_custom_command(
        OUTPUT ${image}
        COMMAND ${PINWHEEL_CC} --image -o ${image} --depfile ${image}.d ${compilers}
                "$<$<BOOL:${arg_REALS}>:--reals>" "$<$<BOOL:${standard}>:-std=gnu++${standard}>"
                "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>"
                "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>" ${sources}
        DEPENDS ${sources} ${PINWHEEL_CC_DEPENDS}
        DEPFILE ${image}.d
        COMMENT "Compiling ${first} for the RV32 cores"
        COMMAND_EXPAND_LISTS VERBATIM)
    set_property(SOURCE ${arg_UNPARSED_ARGUMENTS} APPEND PROPERTY COMPILE_DEFINITIONS
                 "PTL_HANDLER_IMAGE_FILE=\"${image}\"")
    # Link-time optimisation would merge the symbols of their images.
    set_property(SOURCE ${arg_UNPARSED_ARGUMENTS} APPEND PROPERTY COMPILE_OPTIONS -fno-lto)
    set_property(SOURCE ${arg_UNPARSED_ARGUMENTS} APPEND PROPERTY OBJECT_DEPENDS ${image})
endfunction()
