// Formats families as the text of a scrape.
//
//   text         Prometheus' text format 0.0.4
//   openmetrics  OpenMetrics 1.0: counters are named without "_total", and the text ends with # EOF
//
// Values of labels are written as UTF-8: ill-formed bytes and zeros become U+FFFD, since a scraper
// rejects a whole text that contains one of them. Requires: the names of a sample's labels differ.
//
// Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://github.com/OpenObservability/OpenMetrics.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "exposition/family.hpp"

namespace trainyard::exposition {

enum class TextFormat { text, openmetrics };

// Chooses the format by the value of an Accept header; "": text.
TextFormat choose_format(std::string_view accept);
std::string_view content_type(TextFormat format);
std::string format_text(const Families& families, TextFormat format);

// Replaces bytes that no format can contain: ill-formed UTF-8 and zeros.
std::string to_label_value(std::string_view bytes);

}  // namespace trainyard::exposition
