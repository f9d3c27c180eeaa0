// Rules about the tree that no compiler checks: who may include whom, files that nothing uses, words that do not
// belong. Every check is a function over a tree in memory, so that each can be shown to fail.
#ifndef DPAR_TESTS_TIDY_TIDY_H_
#define DPAR_TESTS_TIDY_TIDY_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/tidy/rooms.h"

namespace dpar::tidy {

// Path from the project's root to content.
using Tree = std::map<std::string, std::string>;

struct Violation {
  std::string path;
  int line = 0;  // from 1; 0 for the whole file
  std::string message;

  bool operator==(const Violation&) const = default;
};

// "path:line: message", one line each.
std::string ToText(const std::vector<Violation>& violations);

// Rooms include what ARCHITECTURE.md's table lets them, and other people's libraries stay in the rooms that own them.
std::vector<Violation> CheckIncludes(const Tree& tree, const Rooms& rooms);

// Every permission of the table is used.
std::vector<Violation> CheckPermissionsUsed(const Tree& tree, const Rooms& rooms);

// Rooms link what the table lets them, too.
std::vector<Violation> CheckLinks(const Tree& tree, const Rooms& rooms);

// Whatever `target` links, however far down, is not `library`: "dpar links dpar_cli, which links ...".
std::vector<Violation> CheckNeverLinked(const Tree& tree, const std::string& target, const std::string& library);

// No clock in core/, no weak random generator anywhere.
std::vector<Violation> CheckForbiddenCode(const Tree& tree);

// Notes to self belong in an issue tracker.
std::vector<Violation> CheckWords(const Tree& tree);

// Every .cc is compiled by a target. `compiled` holds paths from the project's root.
std::vector<Violation> CheckCompiled(const Tree& tree, const std::set<std::string>& compiled);

// The files of a compile_commands.json that lie below `source_directory`, as paths from there. Empty when it is not
// one.
std::set<std::string> CompiledFiles(const std::string& compile_commands, const std::string& source_directory);

// Every header is included by something besides its own source and its own test, and its guard follows its path.
std::vector<Violation> CheckHeaders(const Tree& tree);

// Functions have at most 70 lines, files 500.
std::vector<Violation> CheckSizes(const Tree& tree);

// Every service, rpc and enum of the API has a comment.
std::vector<Violation> CheckProtoComments(const Tree& tree);

}  // namespace dpar::tidy

#endif  // DPAR_TESTS_TIDY_TIDY_H_
