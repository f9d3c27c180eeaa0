# Debian packages, one for each component that Install.cmake has; deploy/packages.sh builds and checks them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The DPAR maintainers <maintainers@dpar.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL client server sdk)
set(packages client=dpar server=dpar-server sdk=libdpar-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# The libraries of two releases differ, so a package's version names the release that it was built on and is for.
set(DPAR_PACKAGE_REVISION 1 CACHE STRING "Of the Debian packages, such as 1~deb13")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${DPAR_PACKAGE_REVISION})

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME dpar)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "train node classifiers on private graphs: the client
Uploads a graph to a DPAR server, trains a model on it under node-level
differential privacy, verifies the certificate of what that cost, and
predicts.")

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME dpar-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION science)
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
# LibTorch is 30 times slower with the BLAS that Debian installs otherwise.
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS
  "libopenblas0-pthread, systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "dpar")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "postgresql, prometheus")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/deploy/debian/postinst ${CMAKE_SOURCE_DIR}/deploy/debian/prerm
  ${CMAKE_SOURCE_DIR}/deploy/debian/postrm)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "train node classifiers on private graphs: the server
Trains models on graphs under node-level differential privacy, keeps the
ledger of what every dataset's budget has paid, and signs a certificate for
each model.")

set(CPACK_DEBIAN_SDK_PACKAGE_NAME libdpar-dev)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS "libabsl-dev, libgrpc++-dev, libprotobuf-dev, libssl-dev")
set(CPACK_DEBIAN_SDK_DESCRIPTION "train node classifiers on private graphs: the C++ client library
Calls a DPAR server from C++: uploads, trains, watches, downloads and
verifies. Has headers, a static library and a CMake package.")

# For the release's own Python alone, which the native module was built for.
if(TARGET dpar_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  list(APPEND packages python=python3-dpar)
  math(EXPR next_python "${DPAR_PYTHON_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-dpar)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.${DPAR_PYTHON_MINOR}), python3 (<< 3.${next_python}), python3-grpcio, python3-numpy, python3-protobuf")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas, python3-scipy, python3-torch, python3-tqdm")
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "train node classifiers on private graphs: the Python package
Uploads graphs, trains and predicts from Python, verifies certificates, and
accounts for privacy, over the same C++ core as the client.")
endif()

# Debian's policy: a copyright file and a changelog in each package's own directory of documents.
string(TIMESTAMP today "%a, %d %b %Y 00:00:00 +0000" UTC)
foreach(package ${packages})
  string(REGEX MATCH "^[^=]+" component ${package})
  string(REGEX REPLACE "^[^=]+=" "" name ${package})
  set(changelog ${CMAKE_BINARY_DIR}/debian/${name}/changelog.Debian)
  file(WRITE ${changelog}
    "${name} (${PROJECT_VERSION}-${DPAR_PACKAGE_REVISION}) unstable; urgency=medium\n\n"
    "  * Release ${PROJECT_VERSION}; CHANGELOG.md in the sources says what is new.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
  install(FILES ${changelog} deploy/debian/copyright COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name})
endforeach()
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/CompressDocuments.cmake)
include(CPack)
