# What `make install` installs: the library and its headers as the ecosystem
# expects them, pkg-config and CMake packages, the command, the manual.
include(CMakePackageConfigHelpers)

install(TARGETS portals EXPORT pinwheel LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/portals4.h include/spin.h include/spin_handler.h include/spin_queue.h include/pinwheel_sim.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The prefix may be chosen at install time, so these files are made then, and in their place: two
# installs of one build, to two prefixes, may run at once.
install(CODE "
    set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    foreach(package portals pinwheel pinwheel-firehose pinwheel-raw pinwheel-rma)
        set(file \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/\${package}.pc\")
        message(STATUS \"Installing: \$ENV{DESTDIR}\${file}\")
        configure_file(\"${PROJECT_SOURCE_DIR}/cmake/\${package}.pc.in\" \"\$ENV{DESTDIR}\${file}\"
                       @ONLY)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${file}\")
    endforeach()")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Pinwheel)
configure_package_config_file(cmake/PinwheelConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/PinwheelConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PinwheelConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT pinwheel NAMESPACE Pinwheel:: FILE PinwheelTargets.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/PinwheelConfig.cmake
              ${PROJECT_BINARY_DIR}/PinwheelConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/PinwheelHandlers.cmake DESTINATION ${package_dir})

# What `pinwheel cc` links into images.
install(DIRECTORY src/hpu/rv32/runtime/ DESTINATION ${CMAKE_INSTALL_DATADIR}/pinwheel/rv32
        FILES_MATCHING PATTERN "*.[chS]" PATTERN "*.ld")

# The packets of SLMP, for Wireshark's plugin folder or `tshark -X lua_script:`.
install(FILES tools/wireshark/slmp.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/pinwheel/wireshark)

# Examples and the handlers they use, as sources: examples/README.md.
install(DIRECTORY examples handlers DESTINATION ${CMAKE_INSTALL_DATADIR}/pinwheel)

# The manual: `man PtlPut`, `man portals4`, `man pinwheel`.
install(DIRECTORY man/man1 man/man3 man/man7 DESTINATION ${CMAKE_INSTALL_MANDIR}
        FILES_MATCHING PATTERN "*.[137]")
