// Detects script mode, and brings the user's sources to
// /opt/ml/code.
//
// A job in script mode names a program (sagemaker_program) and an archive of sources
// (sagemaker_submit_directory), and its image cannot run them itself; then entry runs them. The
// archive is fetched here, so that entry needs no access to S3.
//
// Threads: pure functions, except unpack_sources() and copy_image_code(), which block. Errors: of
// the user (no such object, not an archive): not_found, denied, corrupt; those of files.
#pragma once

#include <string>

#include "agent/files/tar.hpp"
#include "agent/files/tree.hpp"
#include "agent/step_context.hpp"

namespace trainyard::agent {

// Limits of an unpacked archive of sources: sources, not data sets.
inline constexpr uint64_t kSourceBytesMax = 20ull << 30;
inline constexpr size_t kSourceFilesMax = 200'000;

// True if `program` is on a PATH of an unpacked image. Links are followed within the image.
bool image_has_program(const std::string& root, const std::string& path,
                       const std::string& program);

// True if entry runs the job: a program is named, the request has no command of its own, and the
// image has none that would be used instead.
bool runs_script(const domain::JobSpec& spec, const domain::Image& image, const ReadyImage& ready,
                 bool image_has_train);

// The location of the archive: "s3://bucket/key", or "input/data/.." below /opt/ml (from a
// channel); "" when there is none to fetch.
std::string source_archive(const domain::JobSpec& spec);

// Unpacks a gzipped tar (or a plain one) into a directory. Writes nothing outside of it.
Result<void> unpack_sources(Source bytes, const Tree& directory, const Interruption& interruption);

// Copies the image's own /opt/ml/code, which ours would hide.
Result<void> copy_image_code(const std::string& root, const Tree& directory,
                             const Interruption& interruption);

// Returns a secret that every host of an attempt can compute and no other; it does not reveal the
// attempt's token.
std::string gang_secret(const domain::AttemptId& attempt, const std::string& token);

}  // namespace trainyard::agent
