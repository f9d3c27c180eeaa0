#include "server/page/page_files.h"

#include <algorithm>
#include <array>

// Made of the files beside this one by cmake/EmbedFiles.cmake: a function for each, called as the file is.
#include "page_contents.h"

namespace dpar {
namespace {

constexpr absl::string_view kHtml = "text/html; charset=utf-8";
constexpr absl::string_view kCss = "text/css; charset=utf-8";
constexpr absl::string_view kScript = "text/javascript; charset=utf-8";

constexpr std::array kFiles = {
    PageFile{"/", kHtml, page_contents::index_html()},
    PageFile{"/page.css", kCss, page_contents::page_css()},
    PageFile{"/favicon.svg", "image/svg+xml", page_contents::favicon_svg()},
    PageFile{"/page.js", kScript, page_contents::page_js()},
    PageFile{"/api.js", kScript, page_contents::api_js()},
    PageFile{"/dom.js", kScript, page_contents::dom_js()},
    PageFile{"/format.js", kScript, page_contents::format_js()},
    PageFile{"/chart.js", kScript, page_contents::chart_js()},
    PageFile{"/health.js", kScript, page_contents::health_js()},
    PageFile{"/usage.js", kScript, page_contents::usage_js()},
    PageFile{"/history.js", kScript, page_contents::history_js()},
    PageFile{"/jobs.js", kScript, page_contents::jobs_js()},
    PageFile{"/ledger.js", kScript, page_contents::ledger_js()},
};

}  // namespace

const PageFile* FindPageFile(absl::string_view path) {
  const auto* const found =
      std::find_if(kFiles.begin(), kFiles.end(), [&](const PageFile& file) { return file.path == path; });
  return found == kFiles.end() ? nullptr : found;
}

}  // namespace dpar
