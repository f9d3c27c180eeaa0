// Reads elements, attributes and text. Refuses document types, so no entity can expand a file or reach outside of it.
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

// Stops when a visitor fails. NOT_FOUND if the file cannot be opened; INVALID_GRAPH in `array` at a line of other XML.
absl::Status ReadXml(const std::string& path, absl::string_view array, const XmlVisitor& start, const XmlVisitor& end);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_XML_ELEMENTS_H_
