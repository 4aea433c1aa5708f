// Implements Logs::filter and Logs::scan over the streams of a group, which an EventMerge merges.
//
// Threads: run_filter() is callable from anywhere; a scan is confined to one thread at a time.
// Errors: invalid (pattern, token) and those of Stream.
#pragma once

#include <memory>
#include <vector>

#include "observe/event_merge.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// When the page is full, the key of the merge is the token. The next page reads one block per
// stream again. Memory: settings.scan_held_bytes_max as well.
Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              const LogSettings& settings);

// Lifetime: what FilterSource::open uses outlives the scan.
std::unique_ptr<LogScan> make_scan(std::vector<FilterSource> sources, const ScanQuery& query,
                                   const LogSettings& settings);

}  // namespace trainyard::observe
