#include "cli/findings_view.hpp"

#include <algorithm>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kNameColumn = 9, kTextColumn = 32;
// The least width of a text next to its name. On narrower terminals it is below its name.
constexpr int kTextWidthMin = 40;

struct Mark {
  const char* text;
  Paint paint;
};

Mark mark_of(Finding::State state) {
  switch (state) {
    case Finding::State::ok:
      return {"ok", Paint::green};
    case Finding::State::limited:
      return {"limited", Paint::yellow};
    case Finding::State::missing:
      return {"missing", Paint::red};
  }
  return {"", Paint::none};
}

}  // namespace

std::string findings_text(const OutputStyle& style, const std::vector<Finding>& findings) {
  const bool terminal = style.columns > 0;
  const bool narrow = terminal && style.columns < kTextColumn + kTextWidthMin;
  const int indent = narrow ? kNameColumn : kTextColumn;
  std::string out;
  for (const Finding& finding : findings) {
    const Mark mark = mark_of(finding.state);
    const std::string name = plain_text(finding.name);
    out += paint(style, mark.paint, pad(style, mark.text, kNameColumn));
    const bool below = narrow || (terminal && width_of(name) >= kTextColumn - kNameColumn);
    if (below) {
      out += fit(style, name, style.columns - kNameColumn) + "\n";
      out += paragraph(style, finding.text, Paint::none, {}, indent);
    } else {
      out += pad(style, name, std::max(kTextColumn - kNameColumn - 1, width_of(name))) + " ";
      out += paragraph(style, finding.text, Paint::none, {}, indent).substr(size_t(indent));
    }
    if (!finding.remedy.empty()) out += paragraph(style, finding.remedy, Paint::dim, {}, indent);
  }
  return out;
}

}  // namespace trainyard::cli
