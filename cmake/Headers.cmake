# Precompiled headers: what most sources include of other people's libraries. Our own headers are not among them, so that
# a change of one recompiles its users alone. The preset `clang` compiles without, which finds a source that relies on them.
#   dpar_headers       the standard library, Abseil, protobuf's runtime
#   dpar_rpc_headers   those, gRPC and JSON
#   dpar_test_headers  all of these, and GoogleTest
# CLI11 stays out: every source that sees it compiles two seconds of its constants.
# A compiler takes a precompiled header at -O1, -O2 and -O3 alike, so targets of all levels share them.
set(common_headers
  <algorithm> <array> <atomic> <cmath> <cstdint> <cstdlib> <cstring> <filesystem> <fstream> <functional> <iostream> <limits>
  <map> <memory> <numeric> <optional> <set> <span> <sstream> <string> <thread> <utility> <variant> <vector>
  <absl/cleanup/cleanup.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/ascii.h>
  <absl/strings/escaping.h> <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_replace.h> <absl/strings/str_split.h>
  <absl/strings/strip.h> <absl/synchronization/mutex.h> <absl/synchronization/notification.h> <absl/time/clock.h>
  <absl/time/time.h>
  <google/protobuf/any.pb.h> <google/protobuf/duration.pb.h> <google/protobuf/map_entry.h>
  <google/protobuf/map_field_inl.h> <google/protobuf/message.h> <google/protobuf/timestamp.pb.h>)
set(rpc_headers <grpcpp/grpcpp.h> <google/protobuf/util/json_util.h> <nlohmann/json.hpp>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)

function(dpar_precompile name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/generated/${name}.cc)
  target_link_libraries(${name} PRIVATE absl::base protobuf::libprotobuf ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${DPAR_WARNINGS})
  target_precompile_headers(${name} PRIVATE ${common_headers} ${ARG_HEADERS})
endfunction()

set(rpc_libraries gRPC::grpc++ nlohmann_json::nlohmann_json)
dpar_precompile(dpar_headers)
dpar_precompile(dpar_rpc_headers HEADERS ${rpc_headers} DEPENDS ${rpc_libraries})
dpar_precompile(dpar_test_headers HEADERS ${rpc_headers} ${test_headers} DEPENDS ${rpc_libraries} GTest::gmock)
