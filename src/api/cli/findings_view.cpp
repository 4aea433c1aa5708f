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

std::string findings_text(const Looks& looks, const std::vector<Finding>& findings) {
  const bool terminal = looks.columns > 0;
  const bool narrow = terminal && looks.columns < kTextColumn + kTextWidthMin;
  const int indent = narrow ? kNameColumn : kTextColumn;
  std::string out;
  for (const Finding& finding : findings) {
    const Mark mark = mark_of(finding.state);
    const std::string name = plain_text(finding.name);
    out += paint(looks, mark.paint, pad(looks, mark.text, kNameColumn));
    const bool below = narrow || (terminal && width_of(name) >= kTextColumn - kNameColumn);
    if (below) {
      out += fit(looks, name, looks.columns - kNameColumn) + "\n";
      out += paragraph(looks, finding.text, Paint::none, {}, indent);
    } else {
      out += pad(looks, name, std::max(kTextColumn - kNameColumn - 1, width_of(name))) + " ";
      out += paragraph(looks, finding.text, Paint::none, {}, indent).substr(size_t(indent));
    }
    if (!finding.remedy.empty()) out += paragraph(looks, finding.remedy, Paint::dim, {}, indent);
  }
  return out;
}

}  // namespace trainyard::cli
