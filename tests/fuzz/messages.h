// Every message that a stranger can send.
#ifndef DPAR_TESTS_FUZZ_MESSAGES_H_
#define DPAR_TESTS_FUZZ_MESSAGES_H_

#include <vector>

#include "google/protobuf/message.h"

namespace dpar::fuzz {

// One of each: the requests of the API in the order of its files, services and methods, then events and plans, which
// come with certificates.
const std::vector<const google::protobuf::Message*>& RequestMessages();

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_MESSAGES_H_
