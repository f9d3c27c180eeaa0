# cmake --install build/release [--component sdk|client|python|server] [--prefix DIR]
#
# sdk     the client library, its headers and a CMake package: find_package(dpar), then link dpar::sdk
# client  dpar, its man pages and its completions
# python  the package dpar for Debian's Python, where it was built
# server  dpard, its systemd unit with the user and the directories that it needs, and the operations guide
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/dpar)
set_target_properties(dpar_sdk PROPERTIES EXPORT_NAME sdk)
install(TARGETS dpar_sdk dpar_digest dpar_status dpar_random dpar_proto dpar_proto_grpc
  EXPORT dparTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dpar)
install(EXPORT dparTargets NAMESPACE dpar:: DESTINATION ${package_directory} COMPONENT sdk)
configure_package_config_file(cmake/dparConfig.cmake.in ${CMAKE_BINARY_DIR}/dparConfig.cmake
  INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dparConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dparConfig.cmake ${CMAKE_BINARY_DIR}/dparConfigVersion.cmake
  DESTINATION ${package_directory} COMPONENT sdk)

set(include_directory ${CMAKE_INSTALL_INCLUDEDIR}/dpar)
install(DIRECTORY client/sdk DESTINATION ${include_directory}/client COMPONENT sdk FILES_MATCHING PATTERN "*.h")
install(FILES core/atomic_file.h core/error.h core/mutex.h core/status_macros.h
  DESTINATION ${include_directory}/core COMPONENT sdk)
install(FILES core/random/random.h core/random/secure_random.h DESTINATION ${include_directory}/core/random COMPONENT sdk)
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/ DESTINATION ${include_directory} COMPONENT sdk
  FILES_MATCHING PATTERN "*.pb.h" PATTERN build EXCLUDE)

install(TARGETS dpar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT client)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT client)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.bash RENAME dpar COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.zsh RENAME _dpar COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.fish COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

if(TARGET dpar_python)
  set(python_directory lib/python3/dist-packages/dpar)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/python/dpar/ DESTINATION ${python_directory} COMPONENT python
    PATTERN __pycache__ EXCLUDE PATTERN "_native.*.so" EXCLUDE)
  install(TARGETS dpar_python_native LIBRARY DESTINATION ${python_directory} COMPONENT python)
endif()

# Where LibTorch is not Debian's, the installed dpard looks for it where it was linked from.
set_target_properties(dpard PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS dpard RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
# Below any prefix that systemd looks at, /usr and /usr/local among them, these are their directories.
install(FILES deploy/systemd/dpar.sysusers RENAME dpar.conf DESTINATION lib/sysusers.d COMPONENT server)
install(FILES deploy/systemd/dpar.tmpfiles RENAME dpar.conf DESTINATION lib/tmpfiles.d COMPONENT server)
install(FILES deploy/OPERATIONS.md deploy/METRICS.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT server)
# The unit names the program by its full path, which is known only now: --prefix may have changed it.
install(CODE "
  set(BINDIR \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR})
  set(DOCDIR \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR})
  set(unit \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/dpard.service)
  message(STATUS \"Installing: \${unit}\")
  configure_file(${CMAKE_SOURCE_DIR}/deploy/systemd/dpard.service.in \${unit} @ONLY)
" COMPONENT server)
