// Defines the largest numbers of a job, whatever their source: a client, the configuration, a ledger of an earlier version.
// Chosen so that sums and products of them fit into 64 bits: hosts x bytes, children x quantities, an instant + seconds.
// Limits of one service alone ("as AWS") stay next to its code.
//
// Threads: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::domain {

// Over all instance groups of a job. A gang's launch record holds each of its hosts, with some 400 bytes, and has at most
// 4 MiB; no network pool but a /18 or wider holds more.
inline constexpr int64_t kGangHostsMax = 10'000;
inline constexpr int64_t kVolumeGibMax =
    16'384;  // of one host, as the largest volume of EBS for training jobs
// Of one host. 256 TiB, so that kGangHostsMax of them are below 2^62 bytes; machines have a hundredth of it.
inline constexpr int64_t kHostMemoryBytesMax = int64_t{1} << 48;
inline constexpr int64_t kHostGpusMax = 1'000;  // of one host; machines have 16
inline constexpr double kHostCpusMax = 1e6;     // of one host; machines have a thousand
inline constexpr int64_t kSharedMemoryMebibytesMax =
    1 << 24;  // of /dev/shm or a tmpfs: 16 TiB is a slip of the pen
// Of every time that a request names in seconds: ten years. A job without a timeout runs that long.
inline constexpr int64_t kSecondsMax = 315'360'000;
// Of things that are counted (licences, instances of an environment, vCPU): doubles hold sums of them exactly.
inline constexpr int64_t kCountedMax = 1'000'000'000'000;
// Instants of a job's history: up to the end of the year 9999, so that adding kSecondsMax is far from 2^63.
inline constexpr int64_t kInstantMillisecondsMax = 253'402'300'799'999;

}  // namespace trainyard::domain
