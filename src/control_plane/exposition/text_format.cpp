#include "exposition/text_format.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace trainyard::exposition {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kTotal = "_total";
constexpr size_t kCommentBytes = std::string_view("# HELP ").size();
constexpr size_t kSampleBytes = 200;  // an estimate, to reserve memory
constexpr size_t kAcceptedMax = 50;   // media types in one Accept header

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  if (!out.ends_with('{')) out += ',';
  out.append(name).append("=\"");
  if (is_utf8(value) && value.find('\0') == value.npos)
    append_escaped(out, value, true);
  else
    append_escaped(out, to_label_value(value), true);
  out += '"';
}

// OpenMetrics compares bounds as texts, which always have a point: "1.0".
std::string canonical_bound(const std::string& bound) {
  return bound.find_first_of(".eIN") == bound.npos ? bound + ".0" : bound;
}

class Writer {
 public:
  explicit Writer(TextFormat format) : format_(format) {}

  void write(const Family& family) {
    std::string_view name = family.name;
    if (format_ == TextFormat::openmetrics && family.type == FamilyType::counter)
      name.remove_suffix(kTotal.size());
    out_.append("# HELP ").append(name).append(" ");
    append_escaped(out_, family.help, format_ == TextFormat::openmetrics);
    out_.append("\n# TYPE ").append(name).append(" ").append(kFamilyTypes.text(family.type));
    out_ += '\n';
    for (const FamilySample& sample : family.samples) write(family, sample);
  }

  // Writes families in the text format 0.0.4.
  void write(std::string_view text) {
    if (format_ == TextFormat::text || text.empty()) {
      out_ += text;
      return;
    }
    for (std::string_view line : split(text.substr(0, text.size() - 1), '\n')) {
      // "# HELP NAME ..", "# TYPE NAME .."
      const size_t name_end = line.find(' ', kCommentBytes);
      if (line.starts_with('#') && line.substr(0, name_end).ends_with(kTotal)) {
        out_ += line.substr(0, name_end - kTotal.size());
        line.remove_prefix(name_end);
      }
      out_.append(line).append("\n");
    }
  }

  std::string end() && {
    if (format_ == TextFormat::openmetrics) out_ += "# EOF\n";
    return std::move(out_);
  }

  void reserve(size_t samples) { out_.reserve(samples * kSampleBytes); }

 private:
  void write(const Family& family, const FamilySample& sample) {
    out_.append(family.name).append(sample.suffix);
    const bool shares = sample.shared && !sample.shared->empty();
    if (shares || !sample.labels.empty()) {
      out_ += '{';
      if (shares) out_ += shared_text(sample.shared);
      for (const auto& [label, value] : sample.labels)
        append_label(
            out_, label,
            format_ == TextFormat::openmetrics && label == "le" ? canonical_bound(value) : value);
      out_ += '}';
    }
    out_ += ' ';
    out_ += number_text(sample.value);
    out_ += '\n';
  }

  // Consecutive samples often share labels, so the text of these labels is kept.
  const std::string& shared_text(const SharedLabels& shared) {
    if (last_ == shared) return last_text_;
    last_ = shared;
    last_text_ = "{";
    for (const auto& [label, value] : *shared) append_label(last_text_, label, value);
    last_text_.erase(0, 1);
    return last_text_;
  }

  const TextFormat format_;
  std::string out_;
  SharedLabels last_;
  std::string last_text_;
};

// Returns the quality of an element of Accept: "text/plain;version=0.0.4;q=0.5" -> 0.5.
double quality_of(std::string_view element) {
  for (const std::string_view parameter : split(element, ';')) {
    const std::string_view trimmed = trim(parameter);
    if (!trimmed.starts_with("q=")) continue;
    const auto quality = parse_double(trimmed.substr(2));
    return quality && *quality >= 0 && *quality <= 1 ? *quality : 0;
  }
  return 1;
}

}  // namespace

TextFormat choose_format(std::string_view accept) {
  double open = 0, plain = 0;
  size_t count = 0;
  for (const std::string_view element : split(accept, ',')) {
    if (++count > kAcceptedMax) break;
    const std::string_view type = trim(element.substr(0, element.find(';')));
    if (equals_ignoring_case(type, "application/openmetrics-text"))
      open = std::max(open, quality_of(element));
    else if (equals_ignoring_case(type, "text/plain"))
      plain = std::max(plain, quality_of(element));
  }
  return open > 0 && open >= plain ? TextFormat::openmetrics : TextFormat::text;
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string format_text(const Families& families, TextFormat format) {
  Writer writer(format);
  writer.reserve(families.samples());
  writer.write(families.text());
  for (const Family& family : families.all()) writer.write(family);
  return std::move(writer).end();
}

std::string to_label_value(std::string_view bytes) {
  const std::string text = to_utf8(bytes);
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (c == '\0')
      out += kReplacement;
    else
      out += c;
  return out;
}

}  // namespace trainyard::exposition
