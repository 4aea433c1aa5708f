/* The functions of libcuda.so.1 that clear a GPU's memory, over files in place of GPUs: a machine of the tests has none.
 *
 * TRAINYARD_TEST_GPUS is a directory: "N" holds the memory of GPU N, whose size is the file's; calls are appended to "calls"; where
 * there is "broken-N", writing to GPU N fails. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kSuccess = 0, kInvalid = 1, kOutOfMemory = 2, kBroken = 700, kGpus = 64, kPieces = 1024 };

static int current = -1;
static size_t taken;
static struct { unsigned long long at; size_t bytes; } pieces[kPieces];
static int count;

static const char *place(const char *name, int gpu) {
  static char path[4096];
  snprintf(path, sizeof path, gpu < 0 ? "%s/%s" : "%s/%s%d", getenv("TRAINYARD_TEST_GPUS"), name, gpu);
  return path;
}

static void note(const char *call, size_t bytes) {
  char line[200];
  const int file = open(place("calls", -1), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int length = snprintf(line, sizeof line, "%s gpu=%d bytes=%zu\n", call, current, bytes);
  if (write(file, line, length) != length) abort();
  close(file);
}

static size_t size_of(int gpu) {
  struct stat status;
  return stat(place("", gpu), &status) == 0 ? (size_t)status.st_size : 0;
}

int cuInit(unsigned flags) { return flags == 0 ? kSuccess : kInvalid; }
int cuDeviceGetCount(int *devices) { return *devices = kGpus, kSuccess; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, kSuccess; }
int cuDeviceGetPCIBusId(char *text, int bytes, int device) { return snprintf(text, bytes, "0000:%02x:00.0", device), kSuccess; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) {
  (void)flags;
  current = device;
  *context = &current;
  note("cuCtxCreate", 0);
  return size_of(device) ? kSuccess : kInvalid;
}
int cuCtxDestroy_v2(void *context) { return note("cuCtxDestroy", taken), context == &current && taken == 0 ? kSuccess : kInvalid; }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  *total = size_of(current);
  *free_bytes = *total - taken;
  return kSuccess;
}
int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  if (bytes == 0 || count == kPieces) return kInvalid;
  /* A third at most in one piece, so that several are needed. */
  if (bytes > size_of(current) / 3 + 1 || bytes > size_of(current) - taken) return kOutOfMemory;
  *address = 4096 + taken;
  pieces[count].at = *address;
  pieces[count++].bytes = bytes;
  taken += bytes;
  note("cuMemAlloc", bytes);
  return kSuccess;
}
int cuMemFree_v2(unsigned long long address) {
  for (int i = 0; i < count; i++)
    if (pieces[i].at == address) {
      taken -= pieces[i].bytes;
      pieces[i].at = 0;
      return note("cuMemFree", pieces[i].bytes), kSuccess;
    }
  return kInvalid;
}
int cuMemsetD8_v2(unsigned long long address, unsigned char value, size_t bytes) {
  if (access(place("broken-", current), F_OK) == 0) return kBroken;
  char *zeros = malloc(bytes);
  memset(zeros, value, bytes);
  const int file = open(place("", current), O_WRONLY);
  const ssize_t written = pwrite(file, zeros, bytes, (off_t)(address - 4096));
  close(file);
  free(zeros);
  note("cuMemsetD8", bytes);
  return written == (ssize_t)bytes ? kSuccess : kInvalid;
}
int cuCtxSynchronize(void) { return kSuccess; }
