// Decodes chunks of LAZ one by one by the CUDA source on the host, each in memory of just its size,
// so that a sanitizer sees each access beyond it. Reads and writes little-endian 64-bit integers:
// in: layered, size, rows, and for layers the bytes of a record and the number of layers, for
// points the items and the number of extra bytes; then the bytes. Out: the error; x, y, z as int32.
// tests/host/host_cuda.h and the source are included before it.
static bool get(void* into, size_t size) { return std::fread(into, 1, size, stdin) == size; }

int main() {
    blockDim = {1, 1, 1};
    blockIdx = threadIdx = {0, 0, 0};
    const i64 channels = 4, pages = 3 * 256;
    i64 head[5];
    while (get(head, sizeof head)) {
        const i64 size = head[1], rows = head[2];
        u8* bytes = (u8*)std::malloc(size);
        if (size > 0 && !get(bytes, size)) return 1;
        std::vector<int> xyz(3 * rows, -1);
        const i64 chunk[4] = {(i64)bytes, size, 0, rows};
        int error = 0;
        const i64 stride = head[0] ? layer_words(channels) : point_words(head[4], pages);
        u16* work = (u16*)std::aligned_alloc(32, 2 * stride);
        std::memset(work, 0, 2 * stride);
        int *x = xyz.data(), *y = x + rows, *z = y + rows;
        if (head[0]) laz_layers_alone(chunk, 1, head[3], head[4], work, channels, x, y, z, &error);
        else laz_points_alone(chunk, 1, head[3], head[4], work, pages, x, y, z, &error);
        const i64 found = error;
        std::fwrite(&found, 8, 1, stdout);
        std::fwrite(x, 4, 3 * rows, stdout);
        std::free(bytes);
        std::free(work);
    }
}
