#include "core/graph/xml_elements.h"

#include <expat.h>

#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/graph_error.h"

namespace dpar {
namespace {

constexpr size_t kChunkBytes = 1 << 16;
constexpr size_t kMaxTextBytes = 1 << 16;
constexpr size_t kMaxDepth = 64;
// Limits a tag or a comment: Expat scans it again with every chunk until it is whole.
constexpr int64_t kMaxTokenBytes = 1 << 20;

std::string WithoutPrefix(absl::string_view name) {
  const size_t colon = name.rfind(':');
  return std::string(colon == absl::string_view::npos ? name : name.substr(colon + 1));
}

class Reader {
 public:
  Reader(absl::string_view array, const XmlVisitor& start, const XmlVisitor& end)
      : array_(array), start_(start), end_(end), parser_(XML_ParserCreate(nullptr), &XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &OnStart, &OnEnd);
    XML_SetCharacterDataHandler(parser_.get(), &OnText);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &OnDocumentType);
  }

  absl::Status Read(std::ifstream& file) {
    std::string chunk(kChunkBytes, '\0');
    int64_t bytes = 0;
    while (file) {
      file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      const auto count = static_cast<int>(file.gcount());
      bytes += count;
      if (XML_Parse(parser_.get(), chunk.data(), count, file ? XML_FALSE : XML_TRUE) != XML_STATUS_OK) {
        Fail(GraphErrorAt(array_, Line(),
                          absl::StrCat("is not XML: ", XML_ErrorString(XML_GetErrorCode(parser_.get())))));
      } else if (bytes - XML_GetCurrentByteIndex(parser_.get()) > kMaxTokenBytes) {
        Fail(GraphErrorAt(array_, Line(), "holds a tag or a comment that is too long"));
      }
      if (!failure_.ok()) {
        break;
      }
    }
    return failure_;
  }

 private:
  [[nodiscard]] int64_t Line() const { return static_cast<int64_t>(XML_GetCurrentLineNumber(parser_.get())); }

  // Keeps the first failure. After it, Expat may still report the end of an element without content.
  void Fail(const absl::Status& status) {
    if (failure_.ok() && !status.ok()) {
      failure_ = status;
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  void Visit(const XmlVisitor& visit, XmlElement element) {
    if (failure_.ok()) {
      element.line = Line();
      element.text = std::exchange(text_, "");
      Fail(visit(element));
    }
  }

  static void OnStart(void* reader, const char* name, const char** attributes) {
    Reader& self = *static_cast<Reader*>(reader);
    if (++self.depth_ > kMaxDepth) {
      self.Fail(GraphErrorAt(self.array_, self.Line(), "nests elements too deeply"));
    }
    XmlElement element;
    element.name = WithoutPrefix(name);
    for (; *attributes != nullptr; attributes += 2) {
      element.attributes.emplace(attributes[0], attributes[1]);
    }
    self.Visit(self.start_, std::move(element));
  }

  static void OnEnd(void* reader, const char* name) {
    Reader& self = *static_cast<Reader*>(reader);
    --self.depth_;
    XmlElement element;
    element.name = WithoutPrefix(name);
    self.Visit(self.end_, std::move(element));
  }

  static void OnText(void* reader, const char* text, int length) {
    Reader& self = *static_cast<Reader*>(reader);
    self.text_.append(text, static_cast<size_t>(length));
    if (self.text_.size() > kMaxTextBytes) {
      self.Fail(GraphErrorAt(self.array_, self.Line(), "holds a text that is too long"));
    }
  }

  static void OnDocumentType(void* reader, const char* /*name*/, const char* /*system_id*/, const char* /*public_id*/,
                             int /*has_internal_subset*/) {
    Reader& self = *static_cast<Reader*>(reader);
    self.Fail(GraphErrorAt(self.array_, self.Line(), "begins a document type, which is not read"));
  }

  const absl::string_view array_;
  const XmlVisitor& start_;
  const XmlVisitor& end_;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  absl::Status failure_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

absl::Status ReadXml(const std::string& path, absl::string_view array, const XmlVisitor& start, const XmlVisitor& end) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, absl::StrCat("cannot open '", path, "'"));
  }
  return Reader(array, start, end).Read(file);
}

}  // namespace dpar
