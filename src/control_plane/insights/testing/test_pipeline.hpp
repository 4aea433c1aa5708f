// Runs a query over messages, for the tests of this module.
#pragma once

#include <gtest/gtest.h>

#include "insights/parser.hpp"
#include "insights/pipeline.hpp"

namespace trainyard::insights {

// 2026-11-20T09:45:00Z.
inline constexpr int64_t kStart = 1'795'167'900'000;

inline Query parsed(const std::string& text) {
  auto query = parse_query(text);
  if (const auto* fault = std::get_if<QueryFault>(&query)) {
    ADD_FAILURE() << text << ": " << describe_fault(text, *fault);
    return {};
  }
  return std::get<Query>(std::move(query));
}

// Runs a query over one event for each message; the events are one second apart.
inline Result<std::vector<ResultRow>> run_query(const std::string& text,
                                                const std::vector<std::string>& messages,
                                                const Limits& limits = {}) {
  const Query query = parsed(text);
  Pipeline pipeline(query, from_milliseconds(kStart), limits);
  for (size_t i = 0; i < messages.size(); ++i) {
    const Event event{"group", "123456789012:group", "job/algo-1", i, kStart + int64_t(i) * 1000,
                      kStart,  messages[i]};
    if (!TRY(pipeline.take(std::make_shared<const Event>(event)))) break;
  }
  return pipeline.finish();
}

// Formats rows without @ptr, such as "a=1 b=x; a=2".
inline std::string shown(const Result<std::vector<ResultRow>>& rows) {
  if (!rows) return "error: " + rows.error().message;
  std::string out;
  for (const ResultRow& row : *rows) {
    if (!out.empty()) out += "; ";
    std::string line;
    for (const auto& [name, text] : row)
      if (name != "@ptr") line += (line.empty() ? "" : " ") + name + "=" + text;
    out += line;
  }
  return out;
}

}  // namespace trainyard::insights
