// Commands that have a noun and a verb, and a short form besides. They are declared last, where --help lists them last.
#ifndef DPAR_CLIENT_CLI_SHORT_FORMS_H_
#define DPAR_CLIENT_CLI_SHORT_FORMS_H_

#include "CLI/CLI.hpp"
#include "client/cli/session.h"

namespace dpar {

void AddDatasetShortForms(CLI::App& app, Command& chosen);      // upload, datasets
void AddJobShortForms(CLI::App& app, Command& chosen);          // jobs, watch, cancel, download
void AddCertificateShortForms(CLI::App& app, Command& chosen);  // verify
void AddLedgerShortForms(CLI::App& app, Command& chosen);       // spend, cap, debit

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_SHORT_FORMS_H_
