// Exact counts for @nestjs/throttler. To run it, copy it into a NestJS project.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { Throttle, ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { RollgateThrottlerStorage } from 'rollgate/nest';

@Controller()
class AppController {
  @Get()
  welcome() {
    return 'Welcome.\n';
  }

  @Throttle({ default: { limit: 2, ttl: 60_000 } })
  @Get('dear')
  dear() {
    return 'Not too often, please.\n';
  }
}

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ ttl: 60_000, limit: 10, blockDuration: 0 }],
      storage: new RollgateThrottlerStorage(),
    }),
  ],
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
class AppModule {}

async function main() {
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  console.log(`${await app.getUrl()}/`);
}

main();
