/**
 * For tests: names as lists of sanctions write them, and how the same persons are written elsewhere. Each line was put
 * together by hand from public lists and from general knowledge of how these names are transliterated; no spelling
 * stands in the index that is searched.
 */
export const SPELLINGS: Readonly<
  Record<'patronymic' | 'cyrillic' | 'arabic' | 'han' | 'latin' | 'harder', string>
> = {
  patronymic: `
PUTIN, Vladimir Vladimirovich: Vladimir Putin; Wladimir Putin; Vladimir V. Putin; Putin Vladimir
LAVROV, Sergei Viktorovich: Sergey Lavrov; Sergei Lavrov; Serguei Lavrov
LUKASHENKO, Alexander Grigoryevich: Alexander Lukashenko; Aleksandr Lukashenko
DERIPASKA, Oleg Vladimirovich: Oleg Deripaska; Deripaska, Oleg
SECHIN, Igor Ivanovich: Igor Sechin; Igor I. Sechin
USMANOV, Alisher Burhanovich: Alisher Usmanov
MEDVEDEV, Dmitry Anatolyevich: Dmitry Medvedev; Dmitri Medvedev; Dmitriy Medvedev
YAKUBETS, Maksim Viktorovich: Maksim Yakubets; Maxim Yakubets
KADYROV, Ramzan Akhmatovich: Ramzan Kadyrov
SHOIGU, Sergei Kuzhugetovich: Sergei Shoigu; Sergey Shoygu
BORTNIKOV, Aleksandr Vasilievich: Alexander Bortnikov; Aleksandr Bortnikov
PATRUSHEV, Nikolai Platonovich: Nikolay Patrushev; Nikolai Patrushev
ROTENBERG, Arkady Romanovich: Arkady Rotenberg; Arkadiy Rotenberg
TIMCHENKO, Gennady Nikolayevich: Gennady Timchenko; Gennadiy Timchenko
MISHUSTIN, Mikhail Vladimirovich: Mikhail Mishustin; Michail Mishustin
VOLODIN, Vyacheslav Viktorovich: Vyacheslav Volodin; Viacheslav Volodin
KIRIYENKO, Sergei Vladilenovich: Sergei Kiriyenko; Sergey Kirienko
VEKSELBERG, Viktor Feliksovich: Viktor Vekselberg; Victor Vekselberg
MALOFEYEV, Konstantin Valerievich: Konstantin Malofeev; Konstantin Malofeyev
PRIGOZHIN, Yevgeniy Viktorovich: Yevgeny Prigozhin; Evgeny Prigozhin
GERASIMOV, Valery Vasilyevich: Valery Gerasimov; Valeriy Gerasimov
PESKOV, Dmitry Sergeyevich: Dmitry Peskov
ZAKHAROVA, Maria Vladimirovna: Maria Zakharova; Mariya Zakharova
MATVIYENKO, Valentina Ivanovna: Valentina Matviyenko; Valentina Matvienko
SIMONYAN, Margarita Simonovna: Margarita Simonyan; Margarita Simonian
ABRAMOVICH, Roman Arkadyevich: Roman Abramovich; Roman Abramovitch
FRIDMAN, Mikhail Maratovich: Mikhail Fridman; Mikhail Friedman
MORDASHOV, Alexey Alexandrovich: Alexey Mordashov; Aleksei Mordashov; Alexei Mordaschow
POTANIN, Vladimir Olegovich: Vladimir Potanin
MILLER, Alexey Borisovich: Alexei Miller; Aleksey Miller
KOSTIN, Andrey Leonidovich: Andrei Kostin; Andrey Kostin`,
  cyrillic: `
PUTIN, Vladimir Vladimirovich: Владимир Путин; Путин Владимир Владимирович; Володимир Путін
LAVROV, Sergei Viktorovich: Сергей Лавров; Лавров Сергей Викторович
LUKASHENKO, Alexander Grigoryevich: Александр Лукашенко; Аляксандр Лукашэнка
DERIPASKA, Oleg Vladimirovich: Олег Дерипаска
SECHIN, Igor Ivanovich: Игорь Сечин
MEDVEDEV, Dmitry Anatolyevich: Дмитрий Медведев; Дмитрий Анатольевич Медведев
YAKUBETS, Maksim Viktorovich: Максим Якубец
KADYROV, Ramzan Akhmatovich: Рамзан Кадыров; Кадыров Рамзан Ахматович
SHOIGU, Sergei Kuzhugetovich: Сергей Шойгу
BORTNIKOV, Aleksandr Vasilievich: Александр Бортников
PATRUSHEV, Nikolai Platonovich: Николай Патрушев
ROTENBERG, Arkady Romanovich: Аркадий Ротенберг
TIMCHENKO, Gennady Nikolayevich: Геннадий Тимченко
MISHUSTIN, Mikhail Vladimirovich: Михаил Мишустин
VOLODIN, Vyacheslav Viktorovich: Вячеслав Володин
KIRIYENKO, Sergei Vladilenovich: Сергей Кириенко
VEKSELBERG, Viktor Feliksovich: Виктор Вексельберг
PRIGOZHIN, Yevgeniy Viktorovich: Евгений Пригожин
GERASIMOV, Valery Vasilyevich: Валерий Герасимов
PESKOV, Dmitry Sergeyevich: Дмитрий Песков
ZAKHAROVA, Maria Vladimirovna: Мария Захарова
MATVIYENKO, Valentina Ivanovna: Валентина Матвиенко
YANUKOVYCH, Viktor Fedorovych: Виктор Янукович; Віктор Янукович
MEDVEDCHUK, Viktor: Виктор Медведчук; Віктор Медведчук
DODIK, Milorad: Милорад Додик
KARADZIC, Radovan: Радован Караџић
MLADIC, Ratko: Ратко Младић
PUSHILIN, Denis Vladimirovich: Денис Пушилин
AKSYONOV, Sergey Valeryevich: Сергей Аксёнов; Аксенов Сергей
ABRAMOVICH, Roman Arkadyevich: Роман Абрамович
MORDASHOV, Alexey Alexandrovich: Алексей Мордашов
POTANIN, Vladimir Olegovich: Владимир Потанин
KOSTIN, Andrey Leonidovich: Андрей Костин`,
  arabic: `
AL-ASSAD, Bashar: بشار الأسد; بشار حافظ الأسد
AL-ASSAD, Maher: ماهر الأسد
NASRALLAH, Hasan: حسن نصر الله; حسن نصرالله
HUSAYN, Saddam: صدام حسين
QADHAFI, Muammar: معمر القذافي
QADHAFI, Saif al-Islam: سيف الإسلام القذافي
BIN LADIN, Usama: أسامة بن لادن
AL-ZAWAHIRI, Ayman: أيمن الظواهري
AL-BAGHDADI, Abu Bakr: أبو بكر البغدادي
HANIYEH, Ismail: إسماعيل هنية
SINWAR, Yahya: يحيى السنوار
MISHAL, Khalid: خالد مشعل
DEIF, Mohammed: محمد الضيف
MAKHLUF, Rami: رامي مخلوف
SALIH, Ali Abdallah: علي عبد الله صالح; علي عبدالله صالح
AL-HOUTHI, Abdul Malik: عبد الملك الحوثي; عبدالملك الحوثي
KHAMENEI, Ali: علی خامنه‌ای
SOLEIMANI, Qasem: قاسم سلیمانی; قاسم سليماني
RAISI, Ebrahim: ابراهیم رئیسی
ZARIF, Mohammad Javad: محمد جواد ظریف
QAANI, Esmail: اسماعیل قاآنی
SALAMI, Hossein: حسین سلامی
HAQQANI, Sirajuddin: سراج الدين حقاني
HAQQANI, Jalaluddin: جلال الدين حقاني
AL-JULANI, Abu Muhammad: أبو محمد الجولاني
HAMDAN DAGALO, Mohamed: محمد حمدان دقلو
HAFTAR, Khalifa: خليفة حفتر
BERRI, Nabih: نبيه بري
BASSIL, Gebran: جبران باسيل
BADREDDINE, Mustafa: مصطفى بدر الدين; مصطفى بدرالدين
AL-MASRI, Adnan: عدنان المصري
AL-AROURI, Saleh: صالح العاروري
AL-HINDI, Akram: أكرم الهندي
FADLALLAH, Muhammad Husayn: محمد حسين فضل الله`,
  han: `
CHEN, Quanguo: 陈全国; 陳全國
ZHU, Hailun: 朱海仑
XIA, Baolong: 夏宝龙; 夏寶龍
LUO, Huining: 骆惠宁; 駱惠寧
ZHANG, Xiaoming: 张晓明; 張曉明
WANG, Mingshan: 王明山
HUO, Liujun: 霍留军
SUN, Jinlong: 孙金龙; 孫金龍
PENG, Jiarui: 彭家瑞
WANG, Junzheng: 王君正
CHEN, Mingguo: 陈明国
GAO, Qi: 高奇
WU, Yingjie: 吴英杰; 吳英傑
CAO, Jianming: 曹建明
CHEN, Zhu: 陈竺
DING, Zhongli: 丁仲礼
HAO, Mingjin: 郝明金
SHEN, Yueyue: 沈跃跃
JI, Bingxuan: 吉炳轩
ZHANG, Chunxian: 张春贤
WAN, Exiang: 万鄂湘
YOU, Quan: 尤权
SUN, Qingye: 孙青野
KIM, Jong Un: 金正恩; 김정은
KIM, Jong Il: 金正日; 김정일
KIM, Yo Jong: 金與正; 김여정
CHOE, Ryong Hae: 崔龍海; 최룡해
PAK, Pong Ju: 朴鳳柱; 박봉주
RI, Yong Ho: 李容浩
JO, Yong Won: 趙勇元; 조용원
HWANG, Pyong So: 黃炳誓; 황병서
WANG, Chen: 王晨
ZHENG, Yanxiong: 郑雁雄; 鄭雁雄
LI, Shangfu: 李尚福`,
  latin: `
QADHAFI, Muammar: Moammar Gadhafi; Muammar Gaddafi; Muammar Qaddafi; Moamer Kadhafi; Muamar Kaddafi
BIN LADIN, Usama: Osama bin Laden; Usama bin Laden; Ossama Binladen; bin Laden, Osama
AL-ASSAD, Bashar: Bashar Assad; Bachar el-Assad; Bashar al-Asad; Baschar al-Assad
HUSAYN, Saddam: Saddam Hussein; Saddam Husein; Sadam Hussain
NASRALLAH, Hasan: Hassan Nasrallah; Hasan Nasrullah; Hassan Nasralla
SOLEIMANI, Qasem: Qassem Suleimani; Ghasem Soleimani; Kassem Soleimani; Qasim Sulaimani
KHAMENEI, Ali: Ali Khamenei; Ali Hosseini Khamenei; Ali Khameneii
MISHAL, Khalid: Khaled Mashal; Khaled Meshaal; Khalid Mishaal
HANIYEH, Ismail: Ismail Haniya; Ismail Haniyah; Ismael Haniyeh
HAFTAR, Khalifa: Khalifa Hifter; Khalifa Haftar
HAQQANI, Sirajuddin: Sirajuddin Haqani; Siraj Haqqani; Serajuddin Haqqani
AL-ZAWAHIRI, Ayman: Ayman Zawahiri; Aiman al-Zawahiri; Ayman al Zawahri
AL-BAGHDADI, Abu Bakr: Abu Bakr Baghdadi; Abou Bakr al-Baghdadi
AL-HOUTHI, Abdul Malik: Abdulmalik al-Houthi; Abdel Malek al-Houthi; Abd al-Malik al-Huthi
MADURO MOROS, Nicolas: Nicolás Maduro; Nicolas Maduro Moros; Nikolas Maduro
CABELLO RONDON, Diosdado: Diosdado Cabello; Diosdado Cabello Rondón
GUZMAN LOERA, Joaquin: Joaquín Guzmán; Joaquin Guzman Loera; Joaquin Guzmann
ORTEGA SAAVEDRA, Daniel: Daniel Ortega
MURILLO DE ORTEGA, Rosario Maria: Rosario Murillo
ZAMBADA GARCIA, Ismael: Ismael Zambada; Ismael Zambada García
SAAB MORAN, Alex Nain: Alex Saab; Alex Saab Morán
CARO QUINTERO, Rafael: Rafael Caro Quintero; Raphael Caro Quintero
MUGABE, Robert Gabriel: Robert Mugabe; Robert G. Mugabe
MNANGAGWA, Emmerson Dambudzo: Emmerson Mnangagwa; Emerson Mnangagwa
KONY, Joseph: Joseph Kony; Josef Kony
TAYLOR, Charles Ghankay: Charles Taylor; Charles G. Taylor
GERTLER, Dan: Dan Gertler; Gertler Dan
BOUT, Viktor Anatolijevitch: Viktor Bout; Victor Bout; Viktor But
KARADZIC, Radovan: Radovan Karadžić; Radovan Karadzich
MLADIC, Ratko: Ratko Mladić
DODIK, Milorad: Milorad Dodik
KIM, Jong Un: Kim Jong-un; Kim Jŏng-ŭn; Kim Jongun; Gim Jeong-eun
KIM, Yo Jong: Kim Yo-jong; Kim Yeo-jeong
CHOE, Ryong Hae: Choi Ryong-hae; Choe Ryonghae
PAK, Pong Ju: Pak Pong-ju; Park Pong-ju; Pak Bong-ju
RI, Yong Ho: Ri Yong-ho; Ri Yongho
CHEN, Quanguo: Chen Quan Guo; Quanguo Chen; Chen Quan-guo
LAM, Carrie: Carrie Lam; Lam Carrie
ZHANG, Xiaoming: Xiaoming Zhang; Zhang Xiao Ming
XIA, Baolong: Xia Bao-long; Baolong Xia
MIN AUNG HLAING: Min Aung Hlaing; Minn Aung Hlaing
YANUKOVYCH, Viktor Fedorovych: Viktor Yanukovych; Viktor Yanukovich; Wiktor Janukowytsch
MEDVEDCHUK, Viktor: Viktor Medvedchuk; Wiktor Medwedtschuk
AL-BASHIR, Omar Hassan: Omar al-Bashir; Omar Bashir; Umar al-Bashir
BEMBA GOMBO, Jean-Pierre: Jean-Pierre Bemba; Jean Pierre Bemba; Jeanpierre Bemba
NKURUNZIZA, Pierre: Pierre Nkurunziza; Piere Nkurunziza
KABILA, Joseph: Joseph Kabila
ABRAMOVICH, Roman Arkadyevich: Roman Abramowitsch; Abramovich Roman
MILLER, Alexey Borisovich: Alexej Miller
LI, Shangfu: Li Shang-fu; Shangfu Li
AL-AROURI, Saleh: Saleh Arouri; Salih al-Aruri
FADLALLAH, Muhammad Husayn: Mohammed Hussein Fadlallah; Muhammad Fadlallah
AFWERKI, Isaias: Isaias Afwerki; Isayas Afewerki; Issaias Afwerki`,
  harder: `
AZIZ, Mohammed: मोहम्मद अज़ीज़
KHAN, Hafiz: हाफिज खान
KHAN, Mahmood: महमूद खान; محمود خان
BEN GURION, David: דוד בן גוריון
RABIN, Yitzhak: יצחק רבין
PERES, Shimon: שמעון פרס
CHAUDHARY, Sandeep: संदीप चौधरी
VERMA, Vikram: विक्रम वर्मा
JANG, Song Thaek: 장성택; 張成澤; Jang Song-taek; Chang Song-taek
BELOUSOV, Andrey Removich: Andrei Belousov; Andrej Belousow; Андрей Белоусов
SOBYANIN, Sergey Semyonovich: Sergei Sobyanin; Sergej Sobjanin; Сергей Собянин
ZHIRINOVSKY, Vladimir Volfovich: Vladimir Zhirinovskiy; Wladimir Schirinowski; Владимир Жириновский
NABIULLINA, Elvira Sakhipzadovna: Elvira Nabiullina; Эльвира Набиуллина
CHEMEZOV, Sergey Viktorovich: Sergei Chemezov; Sergej Tschemesow; Сергей Чемезов
KOVALCHUK, Yury Valentinovich: Yuri Kovalchuk; Yuriy Kovalchuk; Юрий Ковальчук
YAKUNIN, Vladimir Ivanovich: Vladimir Yakunin; Владимир Якунин
SURKOV, Vladislav Yurievich: Vladislav Surkov; Wladislaw Surkow; Владислав Сурков
ZOLOTOV, Viktor Vasiliyevich: Viktor Zolotov; Виктор Золотов
GLAZYEV, Sergey: Sergei Glazyev; Sergey Glaziev; Сергей Глазьев
KHUSNULLIN, Marat Shakirzyanovich: Marat Khusnullin; Marat Chusnullin; Марат Хуснуллин
KHLOPONIN, Alexander Gennadyevich: Aleksandr Khloponin
TSYKHOTSKY, Ivan Petrovich: Ivan Tsikhotskiy; Ivan Cychotskij
MUHAMMAD, Khalid Shaykh: Khalid Sheikh Mohammed; Khaled Sheikh Mohammad; خالد شيخ محمد
QASSEM, Naim: Naim Qasim; نعيم قاسم; Naïm Kassem
ATWA, Ali: علي عطوة
AL-KHAZALI, Qais: قيس الخزعلي; Qays Khazali
AL-MALIKI, Nouri: نوري المالكي; Nuri al-Maliki
MOHSENI, Gholam: غلام محسنی
AHMADINEJAD, Mahmoud: محمود احمدی‌نژاد; محمود أحمدي نجاد; Mahmud Ahmadinejad; Mahmoud Ahmadi-Nejad
SHAMKHANI, Ali: علی شمخانی; Ali Chamkhani
LARIJANI, Sadeq: صادق لاریجانی; Sadegh Larijani
SHEKAU, Abubakar: Abu Bakr Shekau; Aboubakar Shekau; أبو بكر شيكاو
YUSUF, Mohammed: محمد يوسف; Muhammad Yusuf; Mohamed Youssouf
OMAR, Mullah Mohammed: Mohammad Omar; محمد عمر; ملا محمد عمر; Mullah Muhammad Umar
AL-ZINDANI, Abd al-Majid: عبد المجيد الزنداني; Abdul Majeed al-Zindani; Abdelmajid Zindani
AL-QARADAWI, Yusuf: يوسف القرضاوي; Youssef al-Qaradawi
AL-SADR, Muqtada: مقتدى الصدر; Moqtada Sadr
AL-ISSAWI, Sadiq: صادق العيساوي
SAEED, Hafiz Muhammad: Hafiz Saeed; Hafiz Sayeed; حافظ محمد سعيد
AZHAR ALVI, Mohammed Masood: Masood Azhar; Maulana Masood Azhar; مسعود اظہر
LI, Zhanshu: 栗战书
TANG, Ping-keung: Chris Tang Ping-keung; 鄧炳強; 邓炳强
TSANG, Kwok-wai Erick: 曾國衞; Erick Tsang
ZENG, Guowei: 曾国卫
WANG, Yi: 王毅
MENG, Wanzhou: 孟晚舟
OUYANG, Feng: 欧阳锋; 歐陽鋒; Ouyang Feng
ZHUGE, Liang: 诸葛亮
KIM, Yong Chol: 김영철; 金英哲; Kim Yong-chul; Kim Young-chol
CHOE, Son Hui: 최선희; 崔善姬; Choi Son-hui; Choe Son-hui
RI, Su Yong: 리수용; 李洙墉; Ri Soo-yong
RO, Kwang Chol: 노광철; 努光鐵; No Kwang-chol
O, Kuk Ryol: 오극렬; 吳克烈; O Kuk-ryol
PARK, Han Se: 박한세
JON, Il Chun: 전일춘; 全日春; Jon Il-chun
HAN, Kwang Song: 한광성
PAK, Jin Hyok: Park Jin Hyok; 박진혁; Pak Chin-hyok
HERNANDEZ ORDONEZ, Juan Orlando: Juan Orlando Hernández; Juan Hernandez
PADRINO LOPEZ, Vladimir: Vladimir Padrino; Vladimir Padrino López
RODRIGUEZ GOMEZ, Delcy Eloina: Delcy Rodríguez; Delcy Rodriguez
FLORES DE MADURO, Cilia Adela: Cilia Flores; Cilia Flores de Maduro
DIAZ-CANEL BERMUDEZ, Miguel: Miguel Díaz-Canel; Miguel Diaz Canel
ERDOGAN, Recep Tayyip: Recep Erdogan; Recep Tayyip Erdoğan
THACI, Hashim: Hashim Thaçi; Хашим Тачи
NETANYAHU, Benjamin: בנימין נתניהו; Binyamin Netanyahu
MARGVELASHVILI, Giorgi: გიორგი მარგველაშვილი
IVANISHVILI, Bidzina: ბიძინა ივანიშვილი; Бидзина Иванишвили
SARGSYAN, Serzh: Սերժ Սարգսյան; Serge Sarkissian; Серж Саргсян
PAPADOPOULOS, Georgios: Γεώργιος Παπαδόπουλος; George Papadopoulos
SHARMA, Rajesh: राजेश शर्मा
PRABHAKARAN, Velupillai: Vellupillai Prabhakaran; Velupillai Pirabaharan
BEN ALI, Zine El Abidine: زين العابدين بن علي; Zine al-Abidine Ben Ali; Zein el-Abidine Ben Ali
MUBARAK, Hosni: حسني مبارك; Husni Mubarak
AL-QADHAFI, Saif: Seif Kadhafi
TRABELSI, Belhassen: بلحسن الطرابلسي
VAN DER BERG, Johannes: Johannes Vandenberg; Johannes van den Berg`,
};

/** A name as a list writes it, and one other spelling of it. */
export interface SpellingPair {
  listed: string;
  asked: string;
}

/** The pairs of some lines. */
export function pairsOf(lines: string): SpellingPair[] {
  return lines
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [listed = '', spellings = ''] = line.split(': ');
      return spellings.split('; ').map((asked) => ({ listed, asked }));
    });
}
