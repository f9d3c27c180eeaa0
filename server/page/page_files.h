// The operator's page: its files, embedded in the program.
#ifndef DPAR_SERVER_PAGE_PAGE_FILES_H_
#define DPAR_SERVER_PAGE_PAGE_FILES_H_

#include "absl/strings/string_view.h"

namespace dpar {

struct PageFile {
  absl::string_view path;  // "/" for the page itself
  absl::string_view content_type;
  absl::string_view content;
};

const PageFile* FindPageFile(absl::string_view path);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_PAGE_FILES_H_
