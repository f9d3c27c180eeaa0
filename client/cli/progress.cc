#include "client/cli/progress.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/format.h"

namespace dpar {
namespace {

constexpr int kLongestBar = 40;
constexpr int kShortestBar = 8;
constexpr absl::Duration kRedrawPeriod = absl::Milliseconds(100);
constexpr absl::Duration kPlainPeriod = absl::Seconds(1);
// Columns left free: one because a terminal may wrap at the last, two for the ^C that it shows.
constexpr int kFreeColumns = 3;
constexpr absl::string_view kClearToEnd = "\r\x1b[J";

double Fraction(const ProgressState& state) {
  return state.total > 0 ? static_cast<double>(state.completed) / static_cast<double>(state.total) : 0;
}

// Figures after the bar, least important last.
std::string Figures(const ProgressState& state, size_t count) {
  std::vector<std::string> figures;
  const std::string eta =
      state.eta.has_value() && state.completed < state.total ? absl::StrCat("ETA ", FormatClock(*state.eta)) : "";
  for (const std::string& figure : {eta, state.amount, state.note, state.rate}) {
    if (!figure.empty() && figures.size() < count) {
      figures.push_back(figure);
    }
  }
  return absl::StrJoin(figures, "  ");
}

}  // namespace

std::string RenderProgress(const ProgressState& state, int width, bool utf8) {
  if (state.total <= 0) {
    std::string line = state.stage;
    for (const std::string& part : {state.amount, state.note}) {
      line += part.empty() ? "" : "  " + part;
    }
    return Truncate(line, width);
  }
  const std::string head = absl::StrCat(state.stage, " ");
  const int percent = static_cast<int>(100 * std::clamp(Fraction(state), 0.0, 1.0));
  for (size_t figures = 4;; --figures) {
    const std::string tail = absl::StrCat(absl::StrFormat(" %3d%%  ", percent), Figures(state, figures));
    const int room = width - DisplayWidth(head) - DisplayWidth(tail) - 2;
    if (room >= kShortestBar) {
      return absl::StrCat(head, "[", Bar(Fraction(state), std::min(room, kLongestBar), utf8), "]", tail);
    }
    if (figures == 0) {
      return Truncate(absl::StrCat(head, percent, "%"), width);
    }
  }
}

ProgressLine::ProgressLine(std::ostream& err, const Terminal& terminal, Clock clock)
    : err_(err), terminal_(terminal), clock_(std::move(clock)) {}

ProgressLine::~ProgressLine() { Finish(); }

void ProgressLine::Update(const ProgressState& state) {
  if (terminal_.err_is_terminal) {
    UpdateTerminal(state);
  } else {
    UpdatePlain(state);
  }
}

void ProgressLine::Draw() {
  const std::string line = RenderProgress(*state_, terminal_.width() - kFreeColumns, terminal_.utf8);
  Clear();
  err_ << Coloured(Colour::kCyan, line, terminal_.colour) << std::flush;
  on_screen_ = true;
  drawn_width_ = DisplayWidth(line);
  last_drawn_ = clock_();
}

void ProgressLine::Clear() {
  // A terminal that was made narrower has broken the line into rows, and the cursor is in the last of them.
  const int rows = on_screen_ ? (std::max(drawn_width_, 1) - 1) / std::max(terminal_.width(), 1) : 0;
  if (rows > 0) {
    err_ << "\x1b[" << rows << "A";
  }
  err_ << kClearToEnd;
  on_screen_ = false;
}

void ProgressLine::UpdateTerminal(const ProgressState& state) {
  const bool new_stage = !state_.has_value() || state_->stage != state.stage;
  if (new_stage && state_.has_value()) {
    Finish();
  }
  state_ = state;
  if (new_stage || clock_() - last_drawn_ >= kRedrawPeriod) {
    Draw();
  }
}

void ProgressLine::UpdatePlain(const ProgressState& state) {
  const bool new_stage = !state_.has_value() || state_->stage != state.stage;
  const int64_t quarter = static_cast<int64_t>(4 * Fraction(state));
  const absl::Time now = clock_();
  if (new_stage || (quarter > quarter_ && now - last_drawn_ >= kPlainPeriod)) {
    const std::string percent =
        state.total > 0 ? absl::StrFormat(" %d%%", static_cast<int>(100 * Fraction(state))) : "";
    err_ << state.stage << percent;
    for (const std::string& part : {state.amount, state.note}) {
      err_ << (part.empty() ? "" : ", ") << part;
    }
    err_ << std::endl;
    quarter_ = quarter;
    last_drawn_ = now;
  }
  state_ = state;
}

void ProgressLine::Say(absl::string_view text) {
  if (on_screen_) {
    Clear();
  }
  err_ << text << std::endl;
  if (terminal_.err_is_terminal && state_.has_value()) {
    Draw();
  }
}

void ProgressLine::Finish() {
  if (on_screen_) {
    if (state_->total > 0) {
      Draw();
      err_ << std::endl;
    } else {
      Clear();
      err_ << std::flush;
    }
  }
  on_screen_ = false;
  state_.reset();
}

}  // namespace dpar
