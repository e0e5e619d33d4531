/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the test takes of a C library, on a machine without an operating system: text goes to the
 * first serial port (16550), the end is Bochs's port 0x8900 (its iodev/unmapped.cc: the letters of
 * "Shutdown" one after the other).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERIAL         0x3f8
#define SERIAL_CONTROL (SERIAL + 3)
#define SERIAL_STATUS  (SERIAL + 5)
#define CONTROL_8N1    0x03
#define STATUS_EMPTY   0x20
#define STATUS_IDLE    0x40
#define POWER          0x8900

static void out(uint16_t port, uint8_t byte)
{
    __asm__ volatile("outb %0, %1" ::"a"(byte), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
    uint8_t byte;
    __asm__ volatile("inb %1, %0" : "=a"(byte) : "Nd"(port));
    return byte;
}

static void put(const char *text)
{
    out(SERIAL_CONTROL, CONTROL_8N1);
    for (; *text; text++) {
        while (!(in(SERIAL_STATUS)&STATUS_EMPTY))
            ;
        out(SERIAL, (uint8_t)*text);
    }
}

static void put_number(unsigned long long number)
{
    char digits[24];
    char *first = &digits[sizeof(digits) - 1];
    *first = 0;
    do {
        *--first = (char)('0' + number % 10);
    } while (number /= 10);
    put(first);
}

/* Of its formats: %s, %d of what is not negative, %zu and %llu. */
int printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format != '%') {
            put((const char[2]){*format, 0});
            continue;
        }
        format++;
        if (*format == 's') {
            put(va_arg(arguments, const char *));
        } else if (*format == 'd') {
            put_number(va_arg(arguments, unsigned));
        } else {
            format += *format == 'z' ? 1 : 2;
            put_number(va_arg(arguments, unsigned long long));
        }
    }
    va_end(arguments);
    return 0;
}

void exit(int code)
{
    printf("exit %d\n", code);
    while (!(in(SERIAL_STATUS)&STATUS_IDLE))
        ;
    for (const char *letter = "Shutdown"; *letter; letter++)
        out(POWER, (uint8_t)*letter);
    for (;;)
        __asm__ volatile("hlt");
}

/* Two workers, never given back. */
void *aligned_alloc(size_t alignment, size_t size)
{
    static _Alignas(4096) uint8_t memory[1 << 18];
    static size_t used;
    void *const start = memory + used;
    if (alignment > 4096 || size > sizeof(memory) - used)
        return NULL;
    used += (size + 4095) & ~(size_t)4095;
    return start;
}

void free(void *memory)
{
    (void)memory;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *const start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
    return start;
}

void *memset(void *to, int value, size_t size)
{
    void *const start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
    return start;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const uint8_t *x = a, *y = b;
    for (size_t i = 0; i < size; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

void explicit_bzero(void *memory, size_t size)
{
    memset(memory, 0, size);
}
