"""Words of relative dates in the languages that forums are written in."""

from __future__ import annotations

from datetime import timedelta

_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

_UNIT_WORDS = {
    _SECOND: "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo secondi секунда секунду "
    "секунды секунд сек secunde sekund sekundy sekunder saniye detik giây 秒 초",
    _MINUTE: "m min mins minute minutes minuten minuto minutos minuti минута минуту минуты минут мин minut minuty minutter "
    "minuuttia dakika menit phút хвилин хвилину хвилини 分 분",
    _HOUR: "h hr hrs hour hours stunde stunden std heure heures hora horas ora ore uur uren час часа часов ч godzina godzinę "
    "godziny godzin hodin hodinami timme timmar timer tuntia saat jam giờ години годину годин 小时 小時 時間 시간",
    _DAY: "d day days tag tage tagen jour jours día dias dia días giorno giorni dag dagen dagar dage день дня дней дн dzień dni "
    "dny dnem zile päivää gün hari ngày дні днів ημέρες 天 日 일",
    7 * _DAY: "w wk wks week weeks woche wochen semaine semaines semana semanas settimana settimane weken неделя неделю недели "
    "недель tydzień tygodnie tygodni týdny vecka veckor uger uker viikkoa hafta minggu tuần тиждень тижні тижнів 周 週 星期 주",
    30 * _DAY: "mo mos month months monat monate monaten mois mes meses mês mese mesi maand maanden месяц месяца месяцев мес "
    "miesiąc miesiące miesięcy měsíci måned måneder månad månader kuukautta ay bulan tháng місяць місяці місяців 月 ヶ月 か月 "
    "개월",
    365.25
    * _DAY: "y yr yrs year years jahr jahre jahren an ans año años ano anos anno anni jaar год года лет rok lata lat roky år "
    "vuotta yıl tahun năm рік роки років 年 년",
}
UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
"""Duration of each unit, by its name."""

NUMBERS = dict.fromkeys(
    [
        "a",
        "an",
        "one",
        "ein",
        "eine",
        "einem",
        "einer",
        "einen",
        "un",
        "une",
        "una",
        "uno",
        "um",
        "uma",
        "een",
        "en",
        "ett",
        "один",
        "одну",
        "одна",
        "jeden",
        "jedną",
        "eden",
        "egy",
        "bir",
    ],
    1.0,
) | {"couple": 2.0, "zwei": 2.0, "two": 2.0, "dva": 2.0}

_DAY_WORDS = {
    0: "today heute aujourd'hui aujourd’hui hoy hoje oggi vandaag сегодня dziś dzisiaj dnes idag i dag tänään bugün ma hari ini "
    "сьогодні σήμερα 今天 今日 오늘",
    1: "yesterday gestern hier à hier, ayer ontem ieri gisteren вчера wczoraj včera igår i går eilen dün tegnap kemarin "
    "вчора χθες "
    "昨天 昨日 昨晚 어제",
    2: "vorgestern avant-hier anteayer позавчера przedwczoraj 前天 一昨日 그저께",
}
_PHRASES = {0: ("i dag", "hari ini", "hôm nay"), 1: ("i går", "hôm qua", "hier à", "hier,", "hier ", "dün")}
_ONLY_IN_PHRASES = frozenset({"i", "à", "ma", "hier", "hier,", "hari", "ini", "dag", "går", "dün"})
_BY_DAYS = [
    (word, days)
    for days, words in _DAY_WORDS.items()
    for word in (*(one for one in words.split() if one not in _ONLY_IN_PHRASES), *_PHRASES.get(days, ()))
]
DAYS_BACK: dict[str, int] = dict(sorted(_BY_DAYS, key=lambda pair: -len(pair[0])))
"""Words of days before today, the longest first."""

LESS_THAN_ONE = (
    "just now", "moments ago", "a moment ago", "gerade eben", "à l'instant", "только что", "przed chwilą",
    "刚刚", "剛剛", "たった今", "방금",
)  # fmt: skip

_WEEKDAY_WORDS = (
    "monday mon montag mo lundi lun lunes lunedì segunda maandag ma понедельник пн poniedziałek",
    "tuesday tue tues dienstag di mardi martes martedì terça dinsdag вторник вт wtorek",
    "wednesday wed mittwoch mi mercredi miércoles mercoledì quarta woensdag среда ср środa",
    "thursday thu thur thurs donnerstag do jeudi jueves giovedì quinta donderdag четверг чт czwartek",
    "friday fri freitag fr vendredi viernes venerdì sexta vrijdag пятница пт piątek",
    "saturday sat samstag sonnabend sa samedi sábado sabato zaterdag суббота сб sobota",
    "sunday sun sonntag so dimanche domingo domenica zondag воскресенье вс niedziela",
)
WEEKDAYS = {word: number for number, words in enumerate(_WEEKDAY_WORDS) for word in words.split()}
"""Monday is 0."""
