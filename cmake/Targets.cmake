# How targets are declared, so that each room's CMakeLists.txt is a list of files and dependencies.
# RPC, TESTING: sources include gRPC, or GoogleTest, and get the precompiled header that has it (cmake/Headers.cmake).

# dpar_library(<name> [RPC | TESTING] SOURCES <file>... [PUBLIC <dependency>...] [PRIVATE <dependency>...])
function(dpar_library name)
  cmake_parse_arguments(ARG "RPC;TESTING" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  dpar_compile(${name} "${ARG_RPC}" "${ARG_TESTING}")
endfunction()

# dpar_binary(<name> [RPC | TESTING] SOURCES <file>... DEPENDS <dependency>...)
function(dpar_binary name)
  cmake_parse_arguments(ARG "RPC;TESTING" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  dpar_compile(${name} "${ARG_RPC}" "${ARG_TESTING}")
endfunction()

function(dpar_compile name rpc testing)
  target_compile_options(${name} PRIVATE ${DPAR_WARNINGS})
  if(testing)
    target_precompile_headers(${name} REUSE_FROM dpar_test_headers)
  elseif(rpc)
    target_precompile_headers(${name} REUSE_FROM dpar_rpc_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM dpar_headers)
  endif()
endfunction()

# Everything that `ctest -L unit` runs.
add_custom_target(unit_tests)

# dpar_test(<name> SOURCES <file>... DEPENDS <dependency>... [LABEL <label>] [TIMEOUT <seconds>])
# One GoogleTest program, one CTest test. The label is "unit" unless another is given. -O1 compiles a test in two thirds of
# the time; what it tests is compiled as it is shipped.
function(dpar_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  dpar_binary(${name} TESTING SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  # At -O1, GCC 12 takes the buffer inside a short string for all of its room.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(environment
      "DPAR_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
      "DPAR_BINARY_DIR=${CMAKE_BINARY_DIR}"
      "ASAN_OPTIONS=detect_container_overflow=0"
      "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
      "TSAN_OPTIONS=ignore_noninstrumented_modules=1")
  if(ARG_LABEL STREQUAL unit)
    add_dependencies(unit_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment}")
endfunction()
