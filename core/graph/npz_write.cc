#include <zip.h>

#include <algorithm>
#include <list>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/atomic_file.h"
#include "core/graph/npy.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr zip_uint32_t kCompressionLevel = 6;
// 1980-01-01 00:00, the first moment a zip can name: the file's bytes must not depend on when it was written.
constexpr zip_uint16_t kDosTime = 0;
constexpr zip_uint16_t kDosDate = (1 << 5) | 1;

struct Descr {
  size_t count = 1;  // of entries

  std::string operator()(std::span<const int64_t> /*entries*/) const { return "<i8"; }
  std::string operator()(std::span<const int32_t> /*entries*/) const { return "<i4"; }
  std::string operator()(std::span<const float> /*entries*/) const { return "<f4"; }
  std::string operator()(std::span<const double> /*entries*/) const { return "<f8"; }
  // numpy knows no text of width 0; an empty one is a single padding byte.
  std::string operator()(absl::string_view text) const {
    return absl::StrCat("|S", std::max<size_t>(text.size() / std::max<size_t>(count, 1), 1));
  }
};

zip_buffer_fragment_t Fragment(const void* data, size_t bytes) {
  zip_buffer_fragment_t fragment;
  // libzip's type is shared with buffers it writes to; this one it only reads.
  fragment.data = static_cast<zip_uint8_t*>(const_cast<void*>(data));
  fragment.length = bytes;
  return fragment;
}

zip_buffer_fragment_t Payload(const NpyView& view) {
  return std::visit(
      [](const auto& entries) {
        using Entries = std::decay_t<decltype(entries)>;
        if (std::is_same_v<Entries, absl::string_view> && entries.empty()) {
          return Fragment("", 1);
        }
        return Fragment(entries.data(), entries.size() * sizeof(typename Entries::value_type));
      },
      view.data);
}

bool AddArray(zip_t* archive, const std::string& name, const std::string& header, const NpyView& view) {
  const zip_buffer_fragment_t fragments[] = {Fragment(header.data(), header.size()), Payload(view)};
  zip_source_t* source = zip_source_buffer_fragment(archive, fragments, 2, 0);
  if (source == nullptr) {
    return false;
  }
  const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, 0);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  return zip_set_file_compression(archive, entry, ZIP_CM_DEFLATE, kCompressionLevel) == 0 &&
         zip_file_set_dostime(archive, entry, kDosTime, kDosDate, 0) == 0;
}

}  // namespace

absl::Status WriteNpzFile(const std::string& path, const std::map<std::string, NpyView>& arrays) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  int error = 0;
  zip_t* archive = zip_open(file.temporary_path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    return WriteError(path, "the archive could not be started");
  }
  std::list<std::string> headers;  // libzip reads them, and the views, when it closes
  bool complete = true;
  for (const auto& [name, view] : arrays) {
    const Descr descr{view.shape.empty() ? 1 : static_cast<size_t>(view.shape[0])};
    const std::string& header = headers.emplace_back(MakeNpyHeader(std::visit(descr, view.data), view.shape));
    complete = complete && AddArray(archive, name, header, view);
  }
  if (!complete || zip_close(archive) != 0) {
    const std::string why = zip_strerror(archive);
    zip_discard(archive);
    return WriteError(path, why);
  }
  return file.Commit();
}

}  // namespace dpar
