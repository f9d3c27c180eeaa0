# How targets are declared, so that each room's CMakeLists.txt is a list of files and dependencies.

# dpar_library(<name> SOURCES <file>... [PUBLIC <dependency>...] [PRIVATE <dependency>...])
function(dpar_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  target_compile_options(${name} PRIVATE ${DPAR_WARNINGS})
endfunction()

# dpar_binary(<name> SOURCES <file>... DEPENDS <dependency>...)
function(dpar_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${DPAR_WARNINGS})
endfunction()

# Everything that `ctest -L unit` runs.
add_custom_target(unit_tests)

# dpar_test(<name> SOURCES <file>... DEPENDS <dependency>... [LABEL <label>] [TIMEOUT <seconds>])
# One GoogleTest program, one CTest test. The label is "unit" unless another is given.
function(dpar_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  dpar_binary(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
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
