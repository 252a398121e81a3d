# SPDX-License-Identifier: BSD-3-Clause
# SIM: programs of tests/portals, tests/process and tests/handlers as simulated jobs of one rank, whose
# processes they fork (suites.py). What they leave out is in not_simulated.txt.

# pinwheel_sim_program(NAME TARGET [VARIABLE=VALUE]...): a program of the suites, in a setting; it is
# counted by simnic.suites.
function(pinwheel_sim_program name program)
    set_property(GLOBAL APPEND_STRING PROPERTY PINWHEEL_SIM_PROGRAMS
                 "${name} $<TARGET_FILE:${program}> $<JOIN:${ARGN}, >\n")
endfunction()

# pinwheel_sim_test(TEST TARGET SHORT [VARIABLE=VALUE]...): a test that runs it. Most are for the long
# run; those of SHORT (a regular expression of tests) are in the short one. With a setting the last part of
# the test's name is that of the program's.
function(pinwheel_sim_test test program short)
    if(PINWHEEL_SANITIZE OR NOT TARGET pinwheel)
        return() # with sanitizers the tests of this folder run, and these suites outside of simulations
    endif()
    set(name ${program})
    if(ARGN)
        string(REGEX REPLACE ".*sim_" "" setting ${test})
        string(APPEND name ".${setting}")
    endif()
    pinwheel_sim_program(${name} ${program} ${ARGN})
    set(here ${PROJECT_SOURCE_DIR}/tests/simnic)
    add_test(NAME ${test} COMMAND ${here}/suites.py run $<TARGET_FILE:pinwheel> ${here}/not_simulated.txt
                                  ${PROJECT_BINARY_DIR}/tests/simnic/programs.txt ${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
    if(NOT test MATCHES "${short}")
        set_tests_properties(${test} PROPERTIES LABELS long)
    endif()
endfunction()
