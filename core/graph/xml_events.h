// The part of XML that graph files use, as a stream of events: elements with attributes, and text. A document type is
// refused, and with it every entity but XML's own five: nothing can make a small file large or reach outside of it.
// Expat parses; this turns its calls into events that whoever reads a graph asks for one after the other.
#ifndef DPAR_CORE_GRAPH_XML_EVENTS_H_
#define DPAR_CORE_GRAPH_XML_EVENTS_H_

#include <map>
#include <memory>
#include <string>

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

  XmlEvents(XmlEvents&& other) noexcept;
  XmlEvents& operator=(XmlEvents&& other) noexcept;
  ~XmlEvents();

  // The next event; an element that closes itself is a start and an end. INVALID_GRAPH at the line that is no XML, or
  // no XML of this kind.
  absl::StatusOr<XmlEvent> Next();

  // INVALID_GRAPH at the line of the event that was given last, counted from 1.
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const;

 private:
  class Reader;
  explicit XmlEvents(std::unique_ptr<Reader> reader);

  std::unique_ptr<Reader> reader_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_XML_EVENTS_H_
