#include "core/graph/xml_events.h"

#include <expat.h>

#include <array>
#include <cstdint>
#include <deque>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr size_t kChunkBytes = 1 << 16;
constexpr size_t kMaxTextBytes = 1 << 16;
constexpr size_t kMaxDepth = 64;
// A tag, a comment: Expat looks at one anew with every chunk until it is whole.
constexpr int64_t kMaxTokenBytes = 1 << 20;

std::string WithoutPrefix(absl::string_view name) {
  const size_t colon = name.rfind(':');
  return std::string(colon == absl::string_view::npos ? name : name.substr(colon + 1));
}

}  // namespace

// Feeds Expat until there is an event, and keeps those that nobody asked for yet: no more than one chunk holds.
class XmlEvents::Reader {
 public:
  Reader(std::ifstream file, absl::string_view array)
      : file_(std::move(file)), array_(array), parser_(XML_ParserCreate(nullptr), &XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), &OnStart, &OnEnd);
    XML_SetCharacterDataHandler(parser_.get(), &OnText);
    XML_SetStartDoctypeDeclHandler(parser_.get(), &OnDocumentType);
  }

  absl::StatusOr<XmlEvent> Next() {
    while (events_.empty() && failure_.ok() && !ended_) {
      Read();
    }
    if (events_.empty()) {
      DPAR_RETURN_IF_ERROR(failure_);
      return XmlEvent();
    }
    Placed next = std::move(events_.front());
    events_.pop_front();
    line_ = next.line;
    return std::move(next.event);
  }

  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const { return GraphErrorAt(array_, line_, fault); }

 private:
  struct Placed {
    int64_t line = 0;
    XmlEvent event;
  };

  void Read() {
    file_.read(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
    const auto count = static_cast<int>(file_.gcount());
    ended_ = !file_;
    bytes_ += count;
    if (XML_Parse(parser_.get(), chunk_.data(), count, ended_ ? XML_TRUE : XML_FALSE) == XML_STATUS_OK) {
      if (bytes_ - XML_GetCurrentByteIndex(parser_.get()) > kMaxTokenBytes) {
        failure_ = GraphErrorAt(array_, Line(), "holds a tag or a comment that is too long");
      }
    } else if (failure_.ok()) {
      failure_ =
          GraphErrorAt(array_, Line(), absl::StrCat("is not XML: ", XML_ErrorString(XML_GetErrorCode(parser_.get()))));
    }
  }

  [[nodiscard]] int64_t Line() const { return static_cast<int64_t>(XML_GetCurrentLineNumber(parser_.get())); }

  // Expat gives nothing more afterwards.
  void Fail(absl::string_view fault) {
    if (failure_.ok()) {
      failure_ = GraphErrorAt(array_, Line(), fault);
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  void Add(XmlEvent event) {
    if (!absl::StripAsciiWhitespace(text_).empty()) {
      XmlEvent text;
      text.kind = XmlEvent::Kind::kText;
      text.text = std::move(text_);
      events_.push_back({Line(), std::move(text)});
    }
    text_.clear();
    events_.push_back({Line(), std::move(event)});
  }

  static void OnStart(void* reader, const char* name, const char** attributes) {
    Reader& self = *static_cast<Reader*>(reader);
    if (++self.depth_ > kMaxDepth) {
      self.Fail("nests elements too deeply");
      return;
    }
    XmlEvent event;
    event.kind = XmlEvent::Kind::kStart;
    event.name = WithoutPrefix(name);
    for (; *attributes != nullptr; attributes += 2) {
      event.attributes.emplace(attributes[0], attributes[1]);
    }
    self.Add(std::move(event));
  }

  static void OnEnd(void* reader, const char* name) {
    Reader& self = *static_cast<Reader*>(reader);
    --self.depth_;
    XmlEvent event;
    event.kind = XmlEvent::Kind::kEnd;
    event.name = WithoutPrefix(name);
    self.Add(std::move(event));
  }

  static void OnText(void* reader, const char* text, int length) {
    Reader& self = *static_cast<Reader*>(reader);
    self.text_.append(text, static_cast<size_t>(length));
    if (self.text_.size() > kMaxTextBytes) {
      self.Fail("holds a text that is too long");
    }
  }

  static void OnDocumentType(void* reader, const char* /*name*/, const char* /*system_id*/, const char* /*public_id*/,
                             int /*has_internal_subset*/) {
    static_cast<Reader*>(reader)->Fail("begins a document type, which is not read");
  }

  std::ifstream file_;
  const std::string array_;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  std::array<char, kChunkBytes> chunk_{};
  int64_t bytes_ = 0;
  bool ended_ = false;
  absl::Status failure_;  // told after the events before it
  std::deque<Placed> events_;
  std::string text_;
  size_t depth_ = 0;
  int64_t line_ = 1;
};

XmlEvents::XmlEvents(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
XmlEvents::XmlEvents(XmlEvents&& other) noexcept = default;
XmlEvents& XmlEvents::operator=(XmlEvents&& other) noexcept = default;
XmlEvents::~XmlEvents() = default;

absl::StatusOr<XmlEvents> XmlEvents::Open(const std::string& path, absl::string_view array) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, absl::StrCat("cannot open '", path, "'"));
  }
  return XmlEvents(std::make_unique<Reader>(std::move(file), array));
}

absl::StatusOr<XmlEvent> XmlEvents::Next() { return reader_->Next(); }

absl::Status XmlEvents::Refuse(absl::string_view fault) const { return reader_->Refuse(fault); }

}  // namespace dpar
