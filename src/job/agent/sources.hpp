// The user's sources and the program that runs them: whether a host's job is a script, where its files come from,
// and bringing them to /opt/ml/code.
//
// A job in script mode names a program (sagemaker_program) and an archive of sources (sagemaker_submit_directory)
// and brings an image that cannot run them itself; entry does then. The archive is fetched here, so that entry
// needs no way to S3.
//
// Threads: pure functions, but unpack_sources() and copy_image_code(), which block.
// Errors: of the user's making (no such object, not an archive): not_found, denied, corrupt; those of files.
#pragma once

#include <string>

#include "agent/step_context.hpp"
#include "agent/tar.hpp"
#include "agent/tree.hpp"

namespace trainyard::agent {

// What an archive of sources may unpack to: sources, not data sets.
inline constexpr uint64_t kSourceBytesMax = 20ull << 30;
inline constexpr size_t kSourceFilesMax = 200'000;

// Whether `program` is on a PATH inside an unpacked image. Links are followed as inside.
bool image_has_program(const std::string& root, const std::string& path, const std::string& program);

// Whether entry runs the job: a program is named, the request brings no command of its own, and the image has
// none that would take its place.
bool runs_script(const domain::JobSpec& spec, const domain::Image& image, const ReadyImage& ready,
                 bool image_has_train);

// Where the archive lies: "s3://bucket/key", or "input/data/.." below /opt/ml (a channel brought it); "" when
// there is none to fetch.
std::string source_archive(const domain::JobSpec& spec);

// Unpacks a gzipped tar (or a plain one) into a directory. Nothing outside it is written.
Result<void> unpack_sources(Source bytes, const Tree& directory, const Interruption& interruption);

// What an image brings in its own /opt/ml/code, which ours would hide.
Result<void> copy_image_code(const std::string& root, const Tree& directory,
                             const Interruption& interruption);

// Known to every host of an attempt and to nobody else; says nothing of the attempt's token.
std::string gang_secret(const domain::AttemptId& attempt, const std::string& token);

}  // namespace trainyard::agent
