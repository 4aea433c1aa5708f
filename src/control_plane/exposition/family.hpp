// A Family is one metric in Prometheus' sense: a name, a type, a help text, and its samples.
//
//   Families families;
//   auto& jobs = families.add("trainyard_jobs", FamilyType::gauge, "Jobs, by state.");
//   jobs.sample({{"state", "active"}}, 3);
//
// Names follow Prometheus' conventions: they end with the base unit, and those of counters with
// "_total". Values of labels may be any bytes: formats escape them.
//
// Threads: plain values. Errors: none; an invalid name fails a CHECK. Units: as the names say.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_table.hpp"
#include "base/prometheus.hpp"

namespace trainyard::exposition {

enum class FamilyType { counter, gauge, histogram };
inline constexpr EnumTable<FamilyType> kFamilyTypes{"metric type",
                                                    {{FamilyType::counter, "counter"},
                                                     {FamilyType::gauge, "gauge"},
                                                     {FamilyType::histogram, "histogram"}}};

// Names and values, in the order in which they are written.
using Labels = std::vector<std::pair<std::string, std::string>>;
using SharedLabels = std::shared_ptr<const Labels>;

struct FamilySample {
  std::string_view suffix;  // for samples of histograms: "_bucket", "_sum", "_count"
  SharedLabels shared;      // the first labels, which many samples share; nullptr: none
  Labels labels;
  double value = 0;
};

struct Family {
  std::string name;
  FamilyType type = FamilyType::gauge;
  std::string help;  // one sentence
  std::vector<FamilySample> samples;

  void sample(Labels labels, double value);
  void sample(SharedLabels shared, Labels labels, double value);
  // Adds the samples of one histogram.
  void histogram(const Labels& labels, const Histogram& histogram);
};

class Families {
 public:
  // The reference stays valid. Requires: `name` is a valid name that was not added before.
  Family& add(std::string_view name, FamilyType type, std::string_view help);
  // Adds a gauge with one sample.
  void gauge(std::string_view name, std::string_view help, double value);
  // Adds a counter with one sample.
  void counter(std::string_view name, std::string_view help, double value);

  // Adds families of lower modules, which are already formatted in the text format 0.0.4.
  void add(const PrometheusText& text) { text_ += text.text(); }

  const std::deque<Family>& all() const { return families_; }
  const std::string& text() const { return text_; }
  size_t samples() const;  // the number of samples in all()

 private:
  std::deque<Family> families_;
  std::string text_;
};

// Returns whether a name has only letters, digits, '_' and ':' and does not begin with a digit.
bool is_metric_name(std::string_view name);
// Formats a number as Prometheus' formats do: "12000000", "0.0005", "+Inf", "NaN".
std::string number_text(double value);

}  // namespace trainyard::exposition
