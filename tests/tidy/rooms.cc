#include "tests/tidy/rooms.h"

#include <sstream>
#include <vector>

#include "tests/tidy/source_text.h"

namespace dpar::tidy {
namespace {

constexpr char kIndent[] = "    ";
constexpr char kArrow[] = "->";

// "core/{a,b}" is core/a and core/b.
std::vector<std::string> Expand(const std::string& word) {
  const size_t open = word.find('{');
  const size_t close = word.find('}');
  if (open == std::string::npos || close == std::string::npos) {
    return {word};
  }
  std::vector<std::string> names;
  std::istringstream parts(word.substr(open + 1, close - open - 1));
  for (std::string part; std::getline(parts, part, ',');) {
    names.push_back(word.substr(0, open) + part);
  }
  return names;
}

bool IsRoom(const std::string& word) {
  return word == "core" || word == "server" || word.starts_with("core/") || word.starts_with("server/") ||
         word.starts_with("client/") || word.starts_with("tests/");
}

}  // namespace

Rooms ReadRooms(const std::string& architecture) {
  Rooms rooms;
  for (const std::string& line : SplitLines(architecture)) {
    std::istringstream words(line);
    std::string room;
    std::string arrow;
    words >> room >> arrow;
    if (!line.starts_with(kIndent) || arrow != kArrow || !IsRoom(room)) {
      continue;
    }
    std::set<std::string>& may_use = rooms[room];
    for (std::string word; words >> word;) {
      for (const std::string& name : Expand(word)) {
        may_use.insert(name);
      }
    }
  }
  return rooms;
}

std::string RoomOf(const std::string& path) {
  if (path == "server/main.cc" || path == "server/config.h" || path == "server/config.cc") {
    return "server/main.cc";
  }
  const size_t first = path.find('/');
  if (first == std::string::npos) {
    return "";
  }
  const size_t second = path.find('/', first + 1);
  return path.substr(0, second == std::string::npos ? first : second);
}

bool MayUse(const Rooms& rooms, const std::string& from, const std::string& to) {
  if (from == to || to == "core" || (to == "server" && from.starts_with("server/"))) {
    return true;
  }
  const auto room = rooms.find(from);
  return room != rooms.end() && room->second.contains(to);
}

}  // namespace dpar::tidy
