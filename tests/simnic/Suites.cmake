# SPDX-License-Identifier: BSD-3-Clause
# SIM: programs of tests/portals, tests/process and tests/handlers as simulated jobs of one rank, whose
# processes they fork (suite.sh). What they leave out is in not_simulated.txt. Most are for the long
# run; those of `short` (a regular expression of tests) are in the short one.
function(pinwheel_sim_test test program short)
    if(PINWHEEL_SANITIZE OR NOT TARGET pinwheel)
        return() # a library cannot be preloaded into a sanitized program
    endif()
    set(here ${PROJECT_SOURCE_DIR}/tests/simnic)
    add_test(NAME ${test} COMMAND ${here}/suite.sh $<TARGET_FILE:pinwheel> ${here}/not_simulated.txt
                                  $<TARGET_FILE:${program}>)
    set_tests_properties(${test} PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
    if(NOT test MATCHES "${short}")
        set_tests_properties(${test} PROPERTIES LABELS long)
    endif()
endfunction()
