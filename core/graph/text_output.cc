#include "core/graph/text_output.h"

#include <utility>

#include "core/status_macros.h"

namespace dpar {

TextOutput::TextOutput(std::string path, AtomicFile file)
    : path_(std::move(path)), file_(std::move(file)), stream_(file_.temporary_path(), std::ios::binary) {}

absl::StatusOr<TextOutput> TextOutput::Create(const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  return TextOutput(path, std::move(file));
}

absl::Status TextOutput::Finish() {
  stream_.close();
  if (!stream_) {
    return WriteError(path_, "not everything could be written; the disk may be full");
  }
  return file_.Commit();
}

}  // namespace dpar
