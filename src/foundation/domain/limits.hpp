// Defines the limits of the numbers of a job. They apply to all sources: clients, the
// configuration, the ledger of an earlier version. Sums and products of numbers within them fit in
// 64 bits: hosts x bytes, children x quantities, an instant + seconds. Limits of a single service
// ("as AWS") are defined next to its code.
//
// Threads: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::domain {

// The limit of all instance groups of a job together. The launch record of a gang has about 400
// bytes for each host, and at most 4 MiB. Only network pools of a /18 or wider have more addresses.
inline constexpr int64_t kGangHostsMax = 10'000;
// The limit of one job, as in the API's model of InstancePreferences.
inline constexpr int64_t kPreferencesMax = 5;
// The limit of one host: the size of the largest EBS volume for training jobs.
inline constexpr int64_t kVolumeGibMax = 16'384;
// The limit of one host: 256 TiB, so that the memory of kGangHostsMax hosts is below 2^62 bytes.
// Machines have a hundredth of it.
inline constexpr int64_t kHostMemoryBytesMax = int64_t{1} << 48;
inline constexpr int64_t kHostGpusMax = 1'000;  // limit of one host; machines have 16
inline constexpr double kHostCpusMax = 1e6;     // limit of one host; machines have a thousand
// The limit of /dev/shm or a tmpfs: 16 TiB; a larger number is a mistake.
inline constexpr int64_t kSharedMemoryMebibytesMax = 1 << 24;
// The limit of every duration in a request: ten years. A job without a timeout may run for this
// time.
inline constexpr int64_t kSecondsMax = 315'360'000;
// The limit of counted resources (licences, instances of an environment, vCPU), so that doubles
// represent their sums exactly.
inline constexpr int64_t kCountedMax = 1'000'000'000'000;
// The limit of instants in a job's history: the end of the year 9999, so that an instant plus
// kSecondsMax is far below 2^63.
inline constexpr int64_t kInstantMillisecondsMax = 253'402'300'799'999;

}  // namespace trainyard::domain
