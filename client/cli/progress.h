#ifndef DPAR_CLIENT_CLI_PROGRESS_H_
#define DPAR_CLIENT_CLI_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/terminal.h"

namespace dpar {

struct ProgressState {
  std::string stage;  // "training"
  int64_t completed = 0;
  int64_t total = 0;   // 0: the stage has no measure
  std::string amount;  // "93/150 steps"
  std::string rate;    // "41.2/s"; empty: none
  std::optional<absl::Duration> eta;
  std::string note;  // "epsilon 0.78"
};

// One line of at most `width` columns. Rate, then note, then amount give way when it is narrow.
std::string RenderProgress(const ProgressState& state, int width, bool utf8);

// On stderr. A terminal's line is redrawn at most ten times a second, and kept when a stage with a measure is over.
// Elsewhere a line is written when the stage changes and at every quarter, never two of a stage within a second.
class ProgressLine {
 public:
  using Clock = std::function<absl::Time()>;
  ProgressLine(std::ostream& err, const Terminal& terminal, Clock clock = absl::Now);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Update(const ProgressState& state);
  // A line of prose, without tearing the bar.
  void Say(absl::string_view text);
  // Ends the line. Nothing is drawn afterwards until the next Update.
  void Finish();

 private:
  void UpdateTerminal(const ProgressState& state);
  void UpdatePlain(const ProgressState& state);
  void Draw();
  void Clear();

  std::ostream& err_;
  const Terminal& terminal_;
  Clock clock_;
  std::optional<ProgressState> state_;
  bool on_screen_ = false;
  int drawn_width_ = 0;  // columns of the line on the screen
  absl::Time last_drawn_ = absl::InfinitePast();
  int64_t quarter_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PROGRESS_H_
