// A certificate as a document for readers of contracts, not of programs: for the terminal and as HTML.
#ifndef DPAR_CLIENT_CLI_CERTIFICATE_DOCUMENT_H_
#define DPAR_CLIENT_CLI_CERTIFICATE_DOCUMENT_H_

#include <string>
#include <vector>

#include "client/cli/terminal.h"
#include "core/certificate/certificate.h"

namespace dpar {

struct DocumentSection {
  struct Row {
    std::string label;  // empty for an item of a list
    std::string value;
    bool is_code = false;  // a digest or a name, which is not broken into words
  };
  std::string heading;
  std::vector<std::string> paragraphs;
  std::vector<Row> rows;
};

enum class Standing { kGuaranteed, kNothingGuaranteed, kNotVerified };

struct CertificateDocument {
  Standing standing = Standing::kNotVerified;
  std::string verdict;
  std::vector<DocumentSection> sections;
  std::vector<Check> checks;
};

// "VERIFIED: epsilon 1 at delta 3e-05 for every node of ...".
std::string Verdict(const Verification& verification);
// The columns whose declaration in the schema the owner took from the rows.
std::vector<std::string> ReadOffTheData(const Statement& statement);
Standing StandingOf(const Verification& verification);

// Only for a certificate whose signature and statement passed.
CertificateDocument MakeCertificateDocument(const Verification& verification);

// Lines of at most `width` columns, except digests and names.
std::string RenderText(const CertificateDocument& page, int width, bool utf8, bool colour);
// Needs nothing from elsewhere and prints on A4 or letter paper.
std::string RenderHtml(const CertificateDocument& page);

// "✓ signature: ..." for each check, in lines of at most `width` columns, except digests and names; 0 is no limit.
std::string RenderChecks(const std::vector<Check>& checks, int width, bool utf8, bool colour);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_CERTIFICATE_DOCUMENT_H_
