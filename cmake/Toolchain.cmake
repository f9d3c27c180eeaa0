# Compiler, linker and cache. mold and ccache are used when they are there and not missed when they are not.
set(DPAR_SANITIZE "" CACHE STRING "Sanitizers for everything this project compiles, for example address,undefined")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below the source directory count as relative, so that a second clone finds what a first one compiled.
  # The rest of the settings is what ccache asks for with precompiled headers; -fpch-preprocess too, with GCC.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# core/infer and core/train have -O3: tests/benchmark shows that it pays there, and nowhere else.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Most sources stay below 500 MB of compiler memory; without collecting garbage there they compile 8 % faster.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=500000)
endif()
# For all, or a precompiled header would not fit some targets. Python's module is a shared object and needs code that runs
# at any address; without interposition it is as fast.
add_compile_options(-pthread -fPIC -fno-semantic-interposition)

if(DPAR_SANITIZE)
  add_compile_options(-fsanitize=${DPAR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DPAR_SANITIZE})
endif()
if(DPAR_SANITIZE MATCHES thread)
  # Thread sanitizer does not know fences; where Asio has one, there is a lock as well. core/mutex.h needs the other.
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK DPAR_THREAD_SANITIZER)
endif()

# Everything is compiled so that libFuzzer sees which branches an input takes; tests/fuzz links libFuzzer itself.
option(DPAR_FUZZ "Instruments for libFuzzer; needs clang. tests/fuzz/run.sh sets it" OFF)
if(DPAR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Warnings are errors in our own code; generated code and other people's headers are SYSTEM.
set(DPAR_WARNINGS -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Only clang checks that what ABSL_GUARDED_BY guards is used under its lock.
  list(APPEND DPAR_WARNINGS -Wthread-safety -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND DPAR_WARNINGS -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror)
  # GCC 12 under sanitizers, and GCC 14, report maybe-uninitialized inside std::optional, where nothing is.
  if(DPAR_SANITIZE OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    list(APPEND DPAR_WARNINGS -Wno-maybe-uninitialized)
  endif()
endif()
