// A text file that appears whole or not at all.
#ifndef DPAR_CORE_GRAPH_TEXT_OUTPUT_H_
#define DPAR_CORE_GRAPH_TEXT_OUTPUT_H_

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/temporary_file.h"

namespace dpar {

class TextOutput {
 public:
  // INTERNAL_FAULT when nothing can be written beside `path`.
  static absl::StatusOr<TextOutput> Create(const std::string& path);

  void Add(absl::string_view text) { stream_.write(text.data(), static_cast<std::streamsize>(text.size())); }
  // Gives the file its name, unless something could not be written.
  absl::Status Finish();

 private:
  TextOutput(std::string path, TemporaryFile file);

  std::string path_;
  TemporaryFile file_;
  std::ofstream stream_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_TEXT_OUTPUT_H_
