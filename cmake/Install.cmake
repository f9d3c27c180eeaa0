# cmake --install build/release [--component sdk|client] [--prefix DIR]
#
# sdk     the client library, its headers and a CMake package: find_package(dpar), then link dpar::sdk
# client  dpar, its man pages and its completions
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/dpar)
set_target_properties(dpar_sdk PROPERTIES EXPORT_NAME sdk)
install(TARGETS dpar_sdk dpar_status dpar_random dpar_proto dpar_proto_grpc
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
install(FILES core/error.h core/status_macros.h DESTINATION ${include_directory}/core COMPONENT sdk)
install(FILES core/random/random.h core/random/secure_random.h DESTINATION ${include_directory}/core/random COMPONENT sdk)
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/ DESTINATION ${include_directory} COMPONENT sdk
  FILES_MATCHING PATTERN "*.pb.h")

install(TARGETS dpar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT client)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT client)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.bash RENAME dpar COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.zsh RENAME _dpar COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_BINARY_DIR}/completion/dpar.fish COMPONENT client
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
