// The part of XML that graph files use: elements with attributes, and text. A document type is refused, and with it
// every entity but XML's own five: nothing can make a small file large or reach outside of it.
#ifndef DPAR_CORE_GRAPH_XML_ELEMENTS_H_
#define DPAR_CORE_GRAPH_XML_ELEMENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dpar {

struct XmlElement {
  std::string name;                               // without its namespace prefix
  std::map<std::string, std::string> attributes;  // where it starts
  std::string text;                               // where it ends: what stands before that, after the last tag
  int64_t line = 1;                               // of the tag, counted from 1
};
using XmlVisitor = std::function<absl::Status(const XmlElement& element)>;

// Calls `start` and `end` where elements do, until one of them fails. `array` names the file in errors: NOT_FOUND when
// it cannot be opened, INVALID_GRAPH at the line that is no XML, or no XML of this kind.
absl::Status ReadXml(const std::string& path, absl::string_view array, const XmlVisitor& start, const XmlVisitor& end);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_XML_ELEMENTS_H_
