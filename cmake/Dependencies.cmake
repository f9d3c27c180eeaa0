# Everything comes from Debian's packages; deploy/install-dependencies.sh names them. Protobuf's module must come before
# gRPC's configuration, or the two disagree about target names.
find_package(Threads REQUIRED)
find_package(Protobuf MODULE REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Eigen3 CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(benchmark CONFIG REQUIRED)
find_package(Boost CONFIG REQUIRED)
find_package(EXPAT MODULE REQUIRED)
find_package(ZLIB MODULE REQUIRED)
find_package(OpenSSL MODULE REQUIRED)
find_package(SQLite3 MODULE REQUIRED)
find_package(PostgreSQL MODULE REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(fftw3 REQUIRED IMPORTED_TARGET fftw3)
pkg_check_modules(libxxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(mpfr REQUIRED IMPORTED_TARGET mpfr)

# A CUDA build of LibTorch can take Debian's place through Torch_DIR or CMAKE_PREFIX_PATH. Its headers are not ours to
# keep free of warnings.
find_package(Torch CONFIG REQUIRED)
# For all: one program has one layout of strings, and precompiled headers are made for one.
add_compile_options(${TORCH_CXX_FLAGS})
add_library(dpar_torch INTERFACE)
target_include_directories(dpar_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(dpar_torch INTERFACE ${TORCH_LIBRARIES})
