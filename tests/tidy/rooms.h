// ARCHITECTURE.md's table of rooms: which room may use which. It is the only such table.
#ifndef DPAR_TESTS_TIDY_ROOMS_H_
#define DPAR_TESTS_TIDY_ROOMS_H_

#include <map>
#include <set>
#include <string>

namespace dpar::tidy {

// A room, and the rooms that it may use besides itself.
using Rooms = std::map<std::string, std::set<std::string>>;

// Reads the lines that are indented by four spaces and have an arrow:
//     core/graph    -> core/random
//     server/store  -> core/{certificate,graph}
Rooms ReadRooms(const std::string& architecture);

// The room of a path: its first two parts, or the first for a file directly below it. What wires the server is a room
// of its own, "server/main.cc": main.cc and the configuration, which know every room.
std::string RoomOf(const std::string& path);

// Every room may use itself and the files directly in core/, every room of the server those directly in server/, and
// beyond that what the table says.
bool MayUse(const Rooms& rooms, const std::string& from, const std::string& to);

}  // namespace dpar::tidy

#endif  // DPAR_TESTS_TIDY_ROOMS_H_
