// The part of XML that graph files use, as a stream of events: elements with attributes, and text. No document type, no
// entities but the five of XML and character numbers, no CDATA, no nesting beyond 64: whatever can make a small file
// large or reach outside of it is refused.
#ifndef DPAR_CORE_GRAPH_XML_EVENTS_H_
#define DPAR_CORE_GRAPH_XML_EVENTS_H_

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

struct XmlEvent {
  enum class Kind { kStart, kEnd, kText, kDocumentEnd };

  Kind kind = Kind::kDocumentEnd;
  std::string name;  // of an element, without its namespace prefix
  std::map<std::string, std::string> attributes;
  std::string text;  // between tags; never only white space
};

class XmlEvents {
 public:
  // `array` names the file in errors. NOT_FOUND when it cannot be opened.
  static absl::StatusOr<XmlEvents> Open(const std::string& path, absl::string_view array);

  // The next event; an element that closes itself is a start and an end. INVALID_GRAPH at the line that is no XML, or
  // no XML of this kind.
  absl::StatusOr<XmlEvent> Next();

  // INVALID_GRAPH at the line that was read last, counted from 1.
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const;

 private:
  XmlEvents(std::ifstream file, absl::string_view array) : file_(std::move(file)), array_(array) {}

  int Get();
  int Peek() { return file_.peek(); }
  absl::Status SkipComment();
  absl::Status SkipInstruction();
  absl::StatusOr<std::string> ReadName();
  absl::StatusOr<std::string> ReadText(int end);
  absl::StatusOr<std::string> ReadEntity();
  absl::StatusOr<XmlEvent> ReadStart();
  absl::StatusOr<XmlEvent> ReadEnd();
  void SkipSpace();

  std::ifstream file_;
  std::string array_;
  int64_t line_ = 1;
  std::vector<std::string> open_;
  bool closes_itself_ = false;
  bool has_root_ = false;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_XML_EVENTS_H_
