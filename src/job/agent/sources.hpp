// Detects script mode, and unpacks the user's sources into /opt/ml/code.
//
// A job is in script mode if it names a program (sagemaker_program) and an archive of sources
// (sagemaker_submit_directory), and its image cannot run them; then entry runs them. The agent
// fetches the archive, so that entry needs no access to S3.
//
// Threads: pure functions, except unpack_sources() and copy_image_code(), which block. Errors: the
// user's (no such object, not an archive): not_found, denied, corrupt; those of files.
#pragma once

#include <string>

#include "agent/files/tar.hpp"
#include "agent/files/tree.hpp"
#include "agent/step_context.hpp"

namespace trainyard::agent {

// Limits of an unpacked archive of sources, which is not meant for data sets.
inline constexpr uint64_t kSourceBytesMax = 20ull << 30;
inline constexpr size_t kSourceFilesMax = 200'000;

// True if `program` is on the PATH `path` of an unpacked image. Follows links within the image.
bool image_has_program(const std::string& root, const std::string& path,
                       const std::string& program);

// True if entry runs the job: the job names a program, the request has no command, and the image
// has no command that would be used instead.
bool runs_script(const domain::JobSpec& spec, const domain::Image& image, const ReadyImage& ready,
                 bool image_has_train);

// Returns the location of the archive: "s3://bucket/key", or "input/data/.." below /opt/ml (in a
// channel); "" when there is no archive to fetch.
std::string source_archive(const domain::JobSpec& spec);

// Unpacks a gzipped tar (or a plain one) into a directory. Writes nothing outside of it.
Result<void> unpack_sources(Source bytes, const Tree& directory, const Interruption& interruption);

// Copies the image's /opt/ml/code, which the mount of the job's /opt/ml hides.
Result<void> copy_image_code(const std::string& root, const Tree& directory,
                             const Interruption& interruption);

// Returns a secret that only the hosts of the attempt can compute. It does not reveal the attempt's
// token.
std::string gang_secret(const domain::AttemptId& attempt, const std::string& token);

}  // namespace trainyard::agent
