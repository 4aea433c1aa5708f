// Implements Logs::filter and Logs::scan with an EventMerge of the streams of a group.
//
// Threads: run_filter() is callable from anywhere; a scan is confined to one thread at a time.
// Errors: invalid (pattern, token), and those of Stream.
#pragma once

#include <memory>
#include <vector>

#include "observe/event_merge.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// Returns one page. If more events follow, the token is the key of the merge. The next page reads
// one block per stream again. Memory: settings.scan_held_bytes_max.
Result<FilterPage> run_filter(std::vector<FilterSource> sources, const FilterQuery& query,
                              const LogSettings& settings);

// Lifetime: what FilterSource::open uses outlives the scan.
std::unique_ptr<LogScan> make_scan(std::vector<FilterSource> sources, const ScanQuery& query,
                                   const LogSettings& settings);

}  // namespace trainyard::observe
