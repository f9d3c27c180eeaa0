// Training options as people type them: NAME=VALUE.
#ifndef DPAR_TESTS_LAB_OPTION_SETTING_H_
#define DPAR_TESTS_LAB_OPTION_SETTING_H_

#include <string>

#include "absl/status/status.h"
#include "dpar/v1/training.pb.h"

namespace dpar::lab {

// Sets one field of TrainingOptions by its name: numbers as they are, booleans as true or false, enums by name in
// either case ("optimizer=adam"). INVALID_FIELD `set` for a name that is no field and a value that is none of its type;
// whether the value is in range is the planner's to say.
absl::Status SetOption(const std::string& typed, v1::TrainingOptions& options);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_OPTION_SETTING_H_
