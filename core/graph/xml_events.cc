#include "core/graph/xml_events.h"

#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/error.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kFileEnd = std::char_traits<char>::eof();
constexpr size_t kMaxTextBytes = 1 << 16;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxAttributes = 64;

bool IsNameCharacter(int c) {
  return c != kFileEnd && (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':' || c >= 0x80);
}

// UTF-8 of a character number; nothing for those that XML does not have.
std::string Utf8(uint32_t code) {
  std::string text;
  if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return text;
  }
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | (code >> 6U));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | (code >> 12U));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    text += static_cast<char>(0xF0U | (code >> 18U));
    text += static_cast<char>(0x80U | ((code >> 12U) & 0x3FU));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
  return text;
}

std::string WithoutPrefix(const std::string& name) {
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

}  // namespace

absl::StatusOr<XmlEvents> XmlEvents::Open(const std::string& path, absl::string_view array) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, absl::StrCat("cannot open '", path, "'"));
  }
  return XmlEvents(std::move(file), array);
}

absl::Status XmlEvents::Refuse(absl::string_view fault) const { return GraphErrorAt(array_, line_, fault); }

int XmlEvents::Get() {
  const int c = file_.get();
  line_ += c == '\n' ? 1 : 0;
  return c;
}

void XmlEvents::SkipSpace() {
  while (Peek() != kFileEnd && std::isspace(Peek()) != 0) {
    Get();
  }
}

absl::Status XmlEvents::SkipComment() {
  if (Get() != '-' || Get() != '-') {
    return Refuse("begins a document type or CDATA, which are not read");
  }
  for (int dashes = 0;;) {
    const int c = Get();
    if (c == kFileEnd) {
      return Refuse("ends within a comment");
    }
    if (c == '>' && dashes >= 2) {
      return absl::OkStatus();
    }
    dashes = c == '-' ? dashes + 1 : 0;
  }
}

absl::Status XmlEvents::SkipInstruction() {
  for (int last = 0;;) {
    const int c = Get();
    if (c == kFileEnd) {
      return Refuse("ends within a processing instruction");
    }
    if (c == '>' && last == '?') {
      return absl::OkStatus();
    }
    last = c;
  }
}

absl::StatusOr<std::string> XmlEvents::ReadName() {
  std::string name;
  while (IsNameCharacter(Peek())) {
    name += static_cast<char>(Get());
    if (name.size() > kMaxTextBytes) {
      return Refuse("holds a name that is too long");
    }
  }
  if (name.empty()) {
    return Refuse("is not XML: a name is missing");
  }
  return name;
}

absl::StatusOr<std::string> XmlEvents::ReadEntity() {
  std::string name;
  for (int c = Get(); c != ';'; c = Get()) {
    if (c == kFileEnd || name.size() > 8) {
      return Refuse("holds an & that begins no entity");
    }
    name += static_cast<char>(c);
  }
  static const auto* named =
      new std::map<std::string, std::string>{{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
  if (const auto found = named->find(name); found != named->end()) {
    return found->second;
  }
  uint32_t code = 0;
  absl::string_view digits = name;
  const bool is_number = absl::ConsumePrefix(&digits, "#x")
                             ? absl::SimpleHexAtoi(digits, &code)
                             : absl::ConsumePrefix(&digits, "#") && absl::SimpleAtoi(digits, &code);
  std::string text = is_number ? Utf8(code) : "";
  return text.empty() ? absl::StatusOr<std::string>(Refuse("holds an entity that is not one of XML's five"))
                      : std::move(text);
}

// Up to `end`, which is not taken.
absl::StatusOr<std::string> XmlEvents::ReadText(int end) {
  std::string text;
  while (Peek() != end) {
    const int c = Get();
    if (c == kFileEnd) {
      return end == '<' ? absl::StatusOr<std::string>(std::move(text)) : Refuse("ends within a value");
    }
    if (c == '&') {
      DPAR_ASSIGN_OR_RETURN(const std::string entity, ReadEntity());
      text += entity;
    } else if (c == '<') {
      return Refuse("is not XML: a < stands within a value");
    } else {
      text += static_cast<char>(c);
    }
    if (text.size() > kMaxTextBytes) {
      return Refuse("holds a text that is too long");
    }
  }
  return text;
}

absl::StatusOr<XmlEvent> XmlEvents::ReadStart() {
  XmlEvent event;
  event.kind = XmlEvent::Kind::kStart;
  DPAR_ASSIGN_OR_RETURN(const std::string name, ReadName());
  event.name = WithoutPrefix(name);
  for (SkipSpace(); Peek() != '>' && Peek() != '/'; SkipSpace()) {
    DPAR_ASSIGN_OR_RETURN(const std::string attribute, ReadName());
    SkipSpace();
    const bool has_value = Get() == '=';
    SkipSpace();
    const int quote = Get();
    if (!has_value || (quote != '"' && quote != '\'')) {
      return Refuse("is not XML: an attribute has no value in quotes");
    }
    DPAR_ASSIGN_OR_RETURN(std::string value, ReadText(quote));
    Get();
    if (event.attributes.size() == kMaxAttributes || !event.attributes.emplace(attribute, std::move(value)).second) {
      return Refuse("holds an attribute twice, or too many");
    }
  }
  closes_itself_ = Get() == '/';
  if (closes_itself_ && Get() != '>') {
    return Refuse("is not XML: a / stands within a tag");
  }
  if (open_.empty() && std::exchange(has_root_, true)) {
    return Refuse("holds a second root element");
  }
  if (open_.size() == kMaxDepth) {
    return Refuse("nests elements too deeply");
  }
  open_.push_back(event.name);
  return event;
}

absl::StatusOr<XmlEvent> XmlEvents::ReadEnd() {
  DPAR_ASSIGN_OR_RETURN(const std::string name, ReadName());
  SkipSpace();
  XmlEvent event;
  event.kind = XmlEvent::Kind::kEnd;
  event.name = WithoutPrefix(name);
  if (Get() != '>' || open_.empty() || open_.back() != event.name) {
    return Refuse("closes an element that is not open");
  }
  open_.pop_back();
  return event;
}

absl::StatusOr<XmlEvent> XmlEvents::Next() {
  if (std::exchange(closes_itself_, false)) {
    XmlEvent event;
    event.kind = XmlEvent::Kind::kEnd;
    event.name = std::move(open_.back());
    open_.pop_back();
    return event;
  }
  for (;;) {
    XmlEvent event;
    DPAR_ASSIGN_OR_RETURN(event.text, ReadText('<'));
    // A byte order mark is no text.
    absl::string_view shown = event.text;
    absl::ConsumePrefix(&shown, "\xEF\xBB\xBF");
    if (!absl::StripAsciiWhitespace(shown).empty()) {
      if (open_.empty()) {
        return Refuse("is not XML: text stands outside of the root element");
      }
      event.kind = XmlEvent::Kind::kText;
      return event;
    }
    if (Get() == kFileEnd) {
      if (!open_.empty() || !has_root_) {
        return Refuse("ends before the root element does");
      }
      return XmlEvent();
    }
    if (Peek() == '/') {
      Get();
      return ReadEnd();
    }
    if (Peek() != '?' && Peek() != '!') {
      return ReadStart();
    }
    DPAR_RETURN_IF_ERROR(Get() == '?' ? SkipInstruction() : SkipComment());
  }
}

}  // namespace dpar
