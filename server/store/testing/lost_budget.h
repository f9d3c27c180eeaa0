// A dataset whose budget's record is gone, which only somebody with the store in his hands can bring about.
#ifndef DPAR_SERVER_STORE_TESTING_LOST_BUDGET_H_
#define DPAR_SERVER_STORE_TESTING_LOST_BUDGET_H_

#include <string>

#include "server/store/testing/temporary_store.h"

namespace dpar::testing {

void LoseBudget(TemporaryStore& store, Engine engine, const std::string& population);

}  // namespace dpar::testing

#endif  // DPAR_SERVER_STORE_TESTING_LOST_BUDGET_H_
