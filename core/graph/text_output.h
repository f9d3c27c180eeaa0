// A text file that appears whole or not at all.
#ifndef DPAR_CORE_GRAPH_TEXT_OUTPUT_H_
#define DPAR_CORE_GRAPH_TEXT_OUTPUT_H_

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/atomic_file.h"

namespace dpar {

class TextOutput {
 public:
  // As AtomicFile::Create.
  static absl::StatusOr<TextOutput> Create(const std::string& path);

  void Add(absl::string_view text) { stream_.write(text.data(), static_cast<std::streamsize>(text.size())); }
  // Gives the file its name, unless something could not be written.
  absl::Status Finish();

 private:
  TextOutput(std::string path, AtomicFile file);

  std::string path_;
  AtomicFile file_;
  std::ofstream stream_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_TEXT_OUTPUT_H_
