#include "tests/fuzz/messages.h"

#include <algorithm>

#include "dpar/v1/budget.pb.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/privacy.pb.h"
#include "dpar/v1/server.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;

std::vector<const Message*> FindMessages() {
  std::vector<const Descriptor*> types;
  for (const FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const Descriptor* type = file->service(i)->method(j)->input_type();
        if (std::find(types.begin(), types.end(), type) == types.end()) {
          types.push_back(type);
        }
      }
    }
  }
  types.push_back(v1::PrivacyEvent::descriptor());
  types.push_back(v1::Plan::descriptor());
  std::vector<const Message*> messages;
  messages.reserve(types.size());
  for (const Descriptor* type : types) {
    messages.push_back(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type));
  }
  return messages;
}

}  // namespace

const std::vector<const Message*>& RequestMessages() {
  static const auto* messages = new std::vector<const Message*>(FindMessages());
  return *messages;
}

}  // namespace dpar::fuzz
