#include "server/page/page_files.h"

#include <algorithm>

// Generated from files/ by cmake/EmbedFiles.cmake.
#include "page_contents.h"

namespace dpar {

const PageFile* FindPageFile(absl::string_view path) {
  const auto* const found =
      std::find_if(kPageFiles.begin(), kPageFiles.end(), [&](const PageFile& file) { return file.path == path; });
  return found == kPageFiles.end() ? nullptr : found;
}

}  // namespace dpar
